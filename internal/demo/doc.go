// Package demo answers: what does a crawler meet out there, in one minute?
//
// It is the little web of `tiptoe demo`: a dozen hosts on loopback, each with
// one lesson. A healthy shop, a blog whose best stories are only in its
// sitemap, a host that takes its time, one that counts requests, one that asks
// for patience in robots.txt, one that stumbles, a museum with closed rooms, a
// street where everybody has moved, a calendar without end, an attic full of
// broken links, a library in strange encodings, and a house where nobody
// answers. Everything on them is made up and meant to be read by people.
//
// # Names
//
// Hosts are called shop.demo.test and so on. Names under .test exist nowhere,
// so a crawler must be told where they are: Resolve gives entries in the form
// of curl's --resolve (host:port:address). All living hosts share one port of
// 127.0.0.1 and are told apart by the first label of the Host header, so a
// browser finds them as shop.localhost as well. The dead host has a port of its
// own where nothing listens; Web keeps that port from being given to anyone
// else.
//
// # Size
//
// A crawl with two requests in flight and gaps of 200 to 500 ms per host ends
// after about a minute, most of it spent on the host with a Crawl-delay. Only
// the calendar has no end: it is there to show that the crawler stops by
// itself.
//
// # Guarantees
//
// The same texts and the same misbehaviour on every start; only the ports
// differ. Every request is booked (package books), so the demo can end with
// what the hosts themselves say about the visitor. Close, or the end of the
// context given to Start, stops everything; nothing is stored.
package demo
