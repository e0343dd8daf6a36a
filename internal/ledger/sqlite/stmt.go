package sqlite

import (
	"fmt"
	"math"
	"strings"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
)

// exec runs one statement and throws its rows away.
func exec(c *sqlite.Conn, query string) error {
	s, err := c.Prepare(query)
	if err != nil {
		return err
	}
	return drain(s)
}

// drain runs a statement to its end, so that it holds no lock afterwards.
func drain(s *sqlite.Stmt) error {
	for {
		row, err := s.Step()
		if err != nil {
			return err
		}
		if !row {
			return s.Reset()
		}
	}
}

// step runs a statement that returns no rows, and makes it ready again.
func step(s *sqlite.Stmt) error {
	if _, err := s.Step(); err != nil {
		return err
	}
	return s.Reset()
}

func bindInts(s *sqlite.Stmt, values ...int64) *sqlite.Stmt {
	for i, v := range values {
		s.BindInt64(i+1, v)
	}
	return s
}

// bindAll prepares a statement with parameters of the kinds that look-ups
// take.
func bindAll(c *sqlite.Conn, query string, args ...any) (*sqlite.Stmt, error) {
	s, err := c.Prepare(query)
	if err != nil {
		return nil, err
	}
	return s, bindArgs(s, args)
}

func bindArgs(s *sqlite.Stmt, args []any) error {
	for i, a := range args {
		switch v := a.(type) {
		case string:
			s.BindText(i+1, ledger.Unbounded(v))
		case int64:
			s.BindInt64(i+1, v)
		default:
			return fmt.Errorf("query argument of type %T", a)
		}
	}
	return nil
}

// noBound turns a cursor that was not given into one behind every row.
func noBound(before int64) int64 {
	if before <= 0 {
		return math.MaxInt64
	}
	return before
}

// noLimit turns the nouns' "no limit" into SQLite's.
func noLimit(n int) int64 {
	if n <= 0 {
		return -1
	}
	return int64(n)
}

// stepUnique is step for a row whose key may be taken.
func stepUnique(s *sqlite.Stmt) error {
	err := step(s)
	switch sqlite.ErrCode(err) {
	case sqlite.ResultConstraintPrimaryKey, sqlite.ResultConstraintUnique:
		return ledger.ErrExists
	}
	return err
}

func placeholders(n int) string {
	var sb strings.Builder
	for i := range n {
		if i > 0 {
			sb.WriteString(", ")
		}
		fmt.Fprintf(&sb, "?%d", i+1)
	}
	return sb.String()
}

func assignments(columns []string, first int) string {
	var sb strings.Builder
	for i, c := range columns {
		if i > 0 {
			sb.WriteString(", ")
		}
		fmt.Fprintf(&sb, "%s = ?%d", c, first+i)
	}
	return sb.String()
}

// each calls fn for every row of a statement and resets it.
func each(s *sqlite.Stmt, fn func(ledger.Reader) error) error {
	values := &columns{s: s}
	r := ledger.Reader{Values: values}
	for {
		row, err := s.Step()
		if err != nil {
			return err
		}
		if !row {
			return s.Reset()
		}
		values.i = 0
		if err := fn(r); err != nil {
			s.Reset()
			return err
		}
	}
}
