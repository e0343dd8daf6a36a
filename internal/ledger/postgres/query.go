package postgres

import (
	"strconv"
	"strings"

	"tiptoe/internal/ledger"
)

// query collects conditions and their arguments.
type query struct {
	conds []string
	args  []any
}

// And adds a condition with a ? for each argument.
func (q *query) And(cond string, args ...any) {
	for _, a := range args {
		if s, ok := a.(string); ok {
			a = ledger.Unbounded(s)
		}
		q.args = append(q.args, a)
		cond = strings.Replace(cond, "?", "$"+strconv.Itoa(len(q.args)), 1)
	}
	q.conds = append(q.conds, cond)
}

// Match adds the condition that a column contains a text or, if the text has
// a *, is like it as a whole. Nothing but the * is special: a URL may well
// contain % and _.
func (q *query) Match(column, pattern string) {
	if !strings.Contains(pattern, "*") {
		q.And("strpos("+column+", ?) > 0", pattern)
		return
	}
	q.And(column+" LIKE ?", strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%").Replace(pattern))
}

func (q *query) where() string { return "WHERE " + strings.Join(q.conds, " AND ") }

// chunks hands rows on to yield, a chunk at a time, up to limit of them (0 is
// no limit). No connection is held while yield works. next returns at most n
// rows, behind those it returned before.
func chunks[T any](limit int, yield func(T, error) bool, next func(n int) ([]T, error)) error {
	left := limit
	for {
		n := chunkRows
		if limit > 0 {
			n = min(n, left)
		}
		chunk, err := next(n)
		if err != nil {
			return err
		}
		for i := range chunk {
			if !yield(chunk[i], nil) {
				return nil
			}
		}
		left -= len(chunk)
		if len(chunk) < n || limit > 0 && left == 0 {
			return nil
		}
	}
}
