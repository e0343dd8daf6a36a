// Package frontiertest answers: does this store keep what frontier.Store
// promises?
//
// Run takes a way to open an empty store and checks every promise, one
// subtest each, named by the sentence it proves: dedupe (also under
// concurrency), order, updates, notes, crawls kept apart, retries after
// failures, and a random walk compared step by step with a model made of Go
// maps. With WithReopen it also checks what must survive a restart.
//
// RunLeases does the same for a store that many processes share: one holder a
// group, fences, expiry, news for holders, the list of workers, counts.
//
// Failing wraps a store so that calls fail at random before or after they
// were carried out. Whatever sits on a Store must get along with it.
package frontiertest
