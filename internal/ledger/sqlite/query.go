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

// run calls fn for every row, up to a limit. A statement with few conditions is
// kept; with more of them filters have too many shapes to keep them all.
func (q *query) run(c *sqlite.Conn, selectFrom, tail string, limit int64, fn func(ledger.Reader)) error {
	s, err := q.prepare(c, q.text(selectFrom, tail))
	if err != nil {
		return err
	}
	if !q.kept() {
		defer s.Finalize()
	}
	if err := bindArgs(s, append(q.args, limit)); err != nil {
		return err
	}
	return each(s, func(r ledger.Reader) error { fn(r); return nil })
}

func (q *query) text(selectFrom, tail string) string {
	return selectFrom + " WHERE " + strings.Join(q.where, " AND ") + " " + tail + " LIMIT ?"
}

func (q *query) kept() bool { return len(q.where) <= 2 }

func (q *query) prepare(c *sqlite.Conn, text string) (*sqlite.Stmt, error) {
	if q.kept() {
		return c.Prepare(text)
	}
	s, _, err := c.PrepareTransient(text)
	return s, err
}
