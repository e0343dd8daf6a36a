//go:build race

package sqlite

// manyPages is fewer under the race detector, which slows the engine tenfold
// and changes nothing about memory.
const manyPages = 8_000
