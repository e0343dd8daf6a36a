// Package books answers: what did the crawler really do to each host?
//
// A simulated web is only a witness if it keeps its own accounts, on its own
// clock, without asking the crawler. Every host has a Host book; every
// request is one Begin and one End on it; a Recorder holds the books of all
// hosts and sums them up.
//
// # What is counted
//
// Each request once by Kind (page, redirect, robots, sitemap, throttled,
// failed, not found, other), and across kinds: bytes sent, requests for areas
// that robots.txt closes, requests made while the host had asked for silence.
// A page is identified by a small number that the site chooses; the first
// complete answer with status 200 makes it unique, each further one is a
// duplicate. A page answered with 429 or 5xx was not served, so asking again
// for it is a retry and no duplicate.
//
// # What the clocks mean
//
//   - Gap: time between two request heads arriving complete at the host,
//     whatever their kind. The client's own gap differs by the jitter of the
//     way; over loopback that is mostly below a millisecond.
//   - In flight: from the head's arrival to the moment before the answer is
//     handed to the kernel. Counting until the write returned would accuse a
//     client that reads the last byte and asks again before the server's
//     goroutine runs on. So the figure never overstates, and it understates
//     the time an answer is on the way.
//   - Block: from Grace after an answer with Retry-After was sent until the
//     time it asked for. Requests that were on the wire while that answer was
//     on its way are innocent; Grace is meant for them.
//
// Nothing here reads a clock: `now` is the time since the recorder began and
// is passed in, so the books can be tested without waiting. A Host has one
// mutex and no I/O under it. A crash loses the books, as they live in memory.
package books
