// Light or dark: the system's choice until somebody chooses here.
import { store } from './store'

export type Theme = 'system' | 'light' | 'dark'

const place = 'tiptoe.theme'

function kept(): Theme {
  const t = localStorage.getItem(place)
  return t === 'light' || t === 'dark' ? t : 'system'
}

export const theme = store<Theme>(kept())

export function setTheme(t: Theme) {
  localStorage.setItem(place, t)
  apply(t)
  theme.set(t)
}

export function apply(t = kept()) {
  if (t === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = t
}
