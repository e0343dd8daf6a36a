package sqlite

import (
	"strings"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

// query collects conditions and their arguments.
type query struct {
	where []string
	args  []any
}

// And adds a condition with a ? for each argument.
func (q *query) And(cond string, args ...any) {
	q.where = append(q.where, cond)
	q.args = append(q.args, args...)
}

// Match adds the condition that a column contains a text or, if the text has
// a *, is like it as a whole. Nothing but the * is special: a URL may well
// contain ? and [.
func (q *query) Match(column, pattern string) {
	if !strings.Contains(pattern, "*") {
		q.And("instr("+column+", ?) > 0", pattern)
		return
	}
	q.And(column+" GLOB ?", strings.NewReplacer("?", "[?]", "[", "[[]").Replace(pattern))
}

// run calls fn for every row. The statement is not kept: filters have too
// many shapes to keep them all.
func (q *query) run(c *sqlite.Conn, selectFrom, tail string, fn func(ledger.Reader)) error {
	s, _, err := c.PrepareTransient(selectFrom + " WHERE " + strings.Join(q.where, " AND ") + " " + tail)
	if err != nil {
		return err
	}
	defer s.Finalize()
	if err := bindArgs(s, q.args); err != nil {
		return err
	}
	return each(s, func(r ledger.Reader) error { fn(r); return nil })
}
