// Package tui answers: what does a person at a terminal see of a crawl?
//
// There are four ways to look, all fed by the values of package crawl:
//
//   - Live, a full-screen view, refreshed four times a second, with keys
//     (q, l, ?, Ctrl+C) and an area for log lines;
//   - Plain, one line every few seconds, when the output is no terminal;
//   - JSON, one page a line for programs;
//   - SummaryBox, what remains on the screen when the crawl has ended.
//
// Detect says which of Live and Plain an output can carry, and whether it
// may have colours and characters beyond ASCII.
//
// # Guarantees
//
//   - A page never drives the screen. Every string that is drawn, whatever
//     its source, passes through Clean in one place (line.add); JSON escapes
//     what Clean would remove. Titles, URLs, host names and error texts are
//     strangers' bytes.
//   - A view never slows the crawl: Live.Page and Live.Log store into
//     bounded rings under a short lock and return; what does not fit is
//     dropped, and for log lines the number dropped is shown. JSON is the
//     exception, by design: losing records is worse than waiting, so a
//     reader that does not read makes the writer wait.
//   - The terminal is left as it was found: raw mode, cursor and modes are
//     restored when Run returns, also after a panic inside the view, which
//     is caught and shown as a line while the crawl goes on.
//   - Every frame fits the terminal it was drawn for, in width and height;
//     rows that come and go are held for some seconds so that the picture
//     stays calm.
//
// # States of the live view
//
//	running ──q, Ctrl+C──► stopping ──Ctrl+C──► forced
//	   └──────── the context of Run ends ────────┴──► gone
//
// One key never ends the view: it asks for a stop, and the crawl's owner ends
// the context when the crawl is over. Only the second Ctrl+C closes the view
// at once, so that the terminal is whole again before Force is called.
//
// # Why the alternate screen
//
// A view drawn in place below the scrollback was tried first. When a terminal
// gets narrower it wraps the old frame's rows, and nobody can tell any more
// where the frame begins: torn rows stay in the scrollback, and log lines
// inserted above land in the middle. On the alternate screen every resize is
// clean, the scrollback is untouched, and what should remain (the newest log
// lines, then the summary) is printed once the view is gone.
//
// # What a crash loses
//
// Nothing that matters: all of this is a picture of what ledger and frontier
// hold. With JSON, at most the last 200 ms of lines are still in memory. A
// terminal left in raw mode by kill -9 is repaired by the command "reset".
package tui
