// Package hostile answers: what does tiptoe do when the other side does not
// play by the rules?
//
// It is a test room: small servers on loopback sockets, one file a
// misbehaviour, that other rooms' tests start by name.
//
//	s := hostile.Start(t, "gzip-bomb")
//	… fetch s.URL …
//	if s.Requests() != permits { … }
//
// Every server misbehaves at Server.URL. Unless the case is about robots.txt or
// sitemaps, it answers requests for those with a plain 404, so that a whole
// crawl gets as far as the page. Cases that misbehave before a request can be
// read (a handshake that never ends, a connection that is reset) do so for
// every path.
//
// # Guarantees
//
//   - Every request head that arrived whole is counted and listed, also those
//     that are never answered: Requests is what the wire saw, to be compared
//     with the permits that were granted.
//   - Every server is bounded: by Options.Life in time, by Options.Bytes in
//     bytes written to one connection, and by one accept queue of connections.
//   - When the test ends, listener and connections are closed and every
//     goroutine of the server has returned before the next test runs.
//
// "Endless" therefore means: longer than any cap under test, not without end.
// What a server breaks, its own test proves with a client that looks at the
// raw bytes; a case that behaves is a defect of this room.
package hostile
