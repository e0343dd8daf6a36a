// Asks before something that cannot be undone. A real dialog element: it keeps
// the focus, and Escape means no.
import { useEffect, useId, useRef } from 'preact/hooks'
import { store, useStore } from '../lib/store'
import { Text } from './basics'

interface Question { title: string; text: string; yes: string; answer: (ok: boolean) => void }

const asked = store<Question | null>(null)

export function confirm(title: string, text: string, yes: string): Promise<boolean> {
  asked.get()?.answer(false)
  return new Promise((answer) => asked.set({ title, text, yes, answer }))
}

export function Confirm() {
  const q = useStore(asked)
  const box = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    if (q) box.current?.showModal()
  }, [q])
  if (!q) return null
  const close = (ok: boolean) => {
    box.current?.close()
    asked.set(null)
    q.answer(ok)
  }
  return (
    <dialog ref={box} aria-labelledby={id} onCancel={(e) => (e.preventDefault(), close(false))}>
      <h2 id={id}><Text>{q.title}</Text></h2>
      <p><Text>{q.text}</Text></p>
      <div class="actions">
        <button type="button" onClick={() => close(false)}>No, leave it</button>
        <button type="button" class="danger" onClick={() => close(true)}>{q.yes}</button>
      </div>
    </dialog>
  )
}
