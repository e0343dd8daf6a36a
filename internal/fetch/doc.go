// Package fetch answers: what does this one address say, right now?
//
// It makes exactly one guarded hop. Pages, robots.txt, sitemaps, redirect
// targets and probes all pass through Client.Do; there is no other way out of
// the process, so a rule kept here is kept everywhere.
//
// # Guarantees
//
//   - One call, at most one request on the wire. net/http's Transport repeats
//     a request by itself when a kept-alive connection turns out to be dead or
//     an HTTP/2 server refuses the stream. This client keeps its own pool of
//     single connections (http.ClientConn), which never repeat anything. A
//     connection that died while it lay idle is reported with Error.Stale, and
//     the caller decides, with a new permit.
//   - No redirects are followed, and no cookies are kept unless Config.Cookies
//     is set. A redirect is an answer like any other.
//   - The address guard judges the address that is dialled, not the name: the
//     client resolves names itself and dials literal addresses, so a name
//     cannot mean something else between the check and the connection. A
//     pooled connection remembers whether it needed permission, and a request
//     without that permission never gets it.
//   - Every wait has an end: name look-up, connect, TLS handshake, response
//     headers, the next body byte, the whole request. One timer a request
//     watches all of them. The context cancels every one of them promptly.
//   - Every size has a cap: headers, body bytes on the wire, body bytes
//     decoded (counted while streaming, so a bomb costs what was decoded up to
//     the cap), the decoder's window, large bodies in flight over all
//     requests, idle connections, cached names.
//   - Every failure is an *Error with an outcome of the closed list. A context
//     that the caller cancelled, or whose own deadline passed, is Cancelled:
//     the crawl stopped, the host did nothing wrong. Use Request.Timeout for a
//     limit whose passing is the host's fault.
//
// # Content codings
//
// The client asks for zstd, gzip and br, and also understands deflate (with
// and without the zlib wrapper) and two codings in a row. An unknown coding, a
// third one, and a body that is not what its label says end in Protocol: the
// bytes would be noise to every reader. An empty body under any label is an
// empty body. Bytes behind a complete compressed stream are ignored, as
// browsers do.
//
// # Order of one hop
//
//	pool ──hit──────────────────────────┐
//	  │miss                             ▼
//	  └► override? ► DNS cache ► guard ► dial ► TLS ► headers ► body ► pool
//
// With a proxy the name is resolved by the proxy; the guard then judges the
// literal address in the URL (and the name localhost) before the proxy hears
// of it, and can do no more.
//
// # What a crash loses
//
// Nothing that matters: the pool and the DNS cache live in memory and are
// rebuilt by use.
package fetch
