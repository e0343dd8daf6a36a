// Package wire answers: how does a simulated host speak HTTP/1.1 without ever
// being the slow side?
//
// A Server reads requests from any number of listeners with a hand-written
// parser, lets a Handler fill an Answer, and sends head and body with one
// write. There is no net/http behind it: one read, one write and a few
// hundred nanoseconds of parsing per request, nothing allocated on a kept
// connection.
//
// # What it speaks
//
// HTTP/1.0 and 1.1 requests with a head of up to MaxHead bytes; keep-alive,
// pipelining (answered in order), HEAD, bodies with Content-Length up to
// maxRequestBody (read and thrown away), origin-form and absolute-form
// targets. Everything else is answered with 400, 413, 431 or 501 and the
// connection is closed. That is narrower than the standard allows and wide
// enough for every well-behaved client; it is a test web, not a server for
// strangers.
//
// # Accounts
//
// A request whose head is complete is booked with Begin before the handler
// runs and with End before the answer is written (books tells why before). A
// request that no site claims is counted as malformed. A site without a book
// is served and not booked; the control pages of a farm are such a site.
//
// # Start and stop
//
// Serve returns when its listener is closed. Close closes listeners and
// connections, wakes answers that are being delayed, and returns when every
// goroutine of the server has ended.
package wire
