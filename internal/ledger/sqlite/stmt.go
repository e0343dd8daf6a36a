package sqlite

import (
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
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
func each(s *sqlite.Stmt, fn func(scanner) error) error {
	for {
		row, err := s.Step()
		if err != nil {
			return err
		}
		if !row {
			return s.Reset()
		}
		if err := fn(scanner{s: s}); err != nil {
			s.Reset()
			return err
		}
	}
}

// ceil rounds up to whole units: a stored wait is never shorter than the wait.
func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
