// Package story answers: what does a rate-limited server see of tiptoe, from
// the first request to the pace it settles on?
//
// It has no code of its own. The project began with a crawl that went wrong:
// 22 workers, 500 URLs, and a server that answered 429 to most of them. Its
// tests tell that story again with a good end, on real sockets, and every
// number in it is counted by the server:
//
//	story_test.go    22 workers on 500 URLs of a host with a limit; a host
//	                 beside it that must not notice
//	nginx_test.go    the same with nginx's limit_req, a rate limiter that
//	                 nobody here wrote, with and without room for bursts; a
//	                 second crawl starts from what the first has learned
//	virtual_test.go  that limiter again in virtual time, over many draws
//	proof_test.go    the least gap, the most in flight and the blocks, from
//	                 the server's books, over redirects, robots.txt, sitemaps,
//	                 retries and kill -9
//
// Milliseconds decide here, and a busy machine reads requests late. The tests
// measure how late it was (meter_test.go), say so, and forgive that much and no
// more; on a quiet machine that is nothing.
//
// A limit of one request a second needs many minutes to be learned and proved.
// Those runs, and those of 2 and 5, are chosen by TIPTOE_STORY=full (make
// story); without it the limit of 20 requests a second is run. The days that
// need no socket are in package sim.
//
// Everything stays on loopback. nginx missing means skipped, or failed when
// CI=true (package testenv).
package story
