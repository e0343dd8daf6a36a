package sqlite

import (
	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// params are a statement's parameters, bound in order.
type params struct {
	s *sqlite.Stmt
	i int
}

// bind begins with a statement's first parameter.
func bind(s *sqlite.Stmt) ledger.Writer { return ledger.Writer{Row: &params{s: s}} }

func (p *params) next() int { p.i++; return p.i }

func (p *params) Null()           { p.s.BindNull(p.next()) }
func (p *params) Int(v int64)     { p.s.BindInt64(p.next(), v) }
func (p *params) Float(v float64) { p.s.BindFloat(p.next(), v) }
func (p *params) Bool(v bool)     { p.s.BindBool(p.next(), v) }
func (p *params) String(v string) { p.s.BindText(p.next(), v) }
func (p *params) Blob(v []byte)   { p.s.BindBytes(p.next(), v) }

func (p *params) FP(f weburl.Fingerprint) {
	var k [16]byte
	p.s.BindBytes(p.next(), ledger.AppendFP(k[:0], f))
}

// columns are those of the row that a statement is at.
type columns struct {
	s *sqlite.Stmt
	i int
}

func (c *columns) next() int { c.i++; return c.i - 1 }

func (c *columns) IsNull() bool   { return c.s.ColumnType(c.i) == sqlite.TypeNull }
func (c *columns) Skip(n int)     { c.i += n }
func (c *columns) Int() int64     { return c.s.ColumnInt64(c.next()) }
func (c *columns) Float() float64 { return c.s.ColumnFloat(c.next()) }
func (c *columns) Bool() bool     { return c.Int() != 0 }

func (c *columns) Text() string {
	if c.IsNull() {
		c.i++
		return ""
	}
	return c.s.ColumnText(c.next())
}

func (c *columns) Blob() []byte {
	i := c.next()
	n := c.s.ColumnLen(i)
	if n == 0 {
		return nil
	}
	v := make([]byte, n)
	return v[:c.s.ColumnBytes(i, v)]
}

func (c *columns) FP() weburl.Fingerprint {
	var k [16]byte
	c.s.ColumnBytes(c.next(), k[:])
	return ledger.ParseFP(k[:])
}
