// Package api answers: what may somebody ask of a running tiptoe over HTTP,
// and who may ask it?
//
// It is the REST API of the service under /v1, described by an OpenAPI 3.1
// document that the program serves itself. New returns one http.Handler for
// the whole port: the API, and whatever dashboard is hung in beside it.
//
// # The way of a request
//
//	headers ─► Host ─► slot ─► key ─► rate ─► route ─► scope ─► body ─► handler
//	           421     503     401    429     404/405  403      413
//
// All of it is one function around the mux (guard.go), so no route can forget
// a step. A route without a scope does not exist: registering one takes it.
// Only health and readiness are open, by a list.
//
// # Guarantees
//
// Tenants: the tenant of the caller's key goes into every call of the store.
// An operator's is the empty string, for whom all rows exist; a key that has
// no tenant and is not an operator's is refused. Another tenant's id and an id
// that never was are answered with the same bytes.
//
// Keys: 256 random bits, kept as a SHA-256 hash, compared in constant time
// whether or not there is such a key. What was found good is believed for
// keyTTL; a key that is revoked through this process is refused from then on,
// one that another process revoked at the latest keyTTL later.
//
// Bounds: bodies, headers, requests at once, requests a second and streams per
// key, and the time a client may take to read or write. A stream has no
// deadline as a whole, but each of its writes has one.
//
// Events: job events and pages are read back from the ledger behind a cursor
// that the client holds, so a client that comes back with the last id misses
// nothing and sees nothing twice. The service's Watch only wakes the reader.
//
// Answers: errors are RFC 9457 problems that say what to do; what is not known
// is null; what operators do to others is written to the operator log. An
// unforeseen error is logged with its cause and answered without it.
//
// # What a crash loses
//
// Nothing that was answered with success. The room keeps only caches: good
// keys, rate limits, pictures of running jobs, host lists.
package api
