// The dashboard of tiptoe: one page, drawn from the same API that everybody
// else uses. Nothing is loaded from anywhere but the program that serves it.
import { render } from 'preact'
import { App } from './app'
import { keyFromAddress } from './lib/session'
import { listen } from './lib/router'
import { apply } from './lib/theme'
import './style.css'

apply()
keyFromAddress()
addEventListener('hashchange', keyFromAddress)
listen()
render(<App />, document.getElementById('app')!)
