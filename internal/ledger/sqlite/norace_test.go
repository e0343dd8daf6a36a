//go:build !race

package sqlite

const manyPages = 100_000
