// Sign in with a key.
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, Problem } from '../lib/api'
import { goodbye, signIn } from '../lib/session'
import { useStore } from '../lib/store'
import { Field, Text } from '../ui/basics'
import { Mark } from '../app'
import type { Me } from '../types'

export function SignIn() {
  const why = useStore(goodbye)
  const [problem, fail] = useState('')
  const [busy, work] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    document.title = 'Sign in · tiptoe'
    input.current?.focus()
  }, [])
  const submit = async (e: Event) => {
    e.preventDefault()
    const k = input.current!.value.trim()
    if (!k) return fail('Paste a key first. It begins with tt_.')
    work(true)
    fail('')
    try {
      signIn(k, await get<Me>('/v1/me', { key: k }))
    } catch (err) {
      fail(err instanceof Problem && err.status === 401 ? 'This key is not accepted. ' + err.detail : err instanceof Problem ? err.detail || err.title : String(err))
      work(false)
      input.current?.select()
    }
  }
  return (
    <main class="signin">
      <form onSubmit={submit} noValidate>
        <h1><Mark /> tiptoe</h1>
        <p class="muted">A crawler that never steps on anyone’s toes.</p>
        {why && <p class="box warn" role="status"><Text>{why}</Text></p>}
        <Field label="Key" error={problem} hint={<>The first key is shown once, when <code>tiptoe serve</code> first starts; an operator can make more. It stays in this tab and is forgotten when the tab is closed.</>}>
          {(p) => <input {...p} ref={input} type="password" autocomplete="off" spellcheck={false} placeholder="tt_…" />}
        </Field>
        <button class="primary" type="submit" disabled={busy}>{busy ? 'Asking…' : 'Sign in'}</button>
        <p class="sr" role="alert">{problem}</p>
      </form>
    </main>
  )
}
