package sqlite

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"tiptoe/internal/ledger"
	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// binder binds a statement's parameters in order. What the nouns express by
// a zero value goes in as NULL through the methods that say so.
type binder struct {
	s *sqlite.Stmt
	i int
}

func (b *binder) next() int { b.i++; return b.i }

func (b *binder) int(v int64) { b.s.BindInt64(b.next(), v) }

func (b *binder) intOrNull(v int64) {
	if v == 0 {
		b.s.BindNull(b.next())
		return
	}
	b.int(v)
}

// known is for numbers of which zero is a value: they are NULL only when
// there was no answer to measure.
func (b *binder) known(v int64, ok bool) {
	if !ok {
		b.s.BindNull(b.next())
		return
	}
	b.int(v)
}

func (b *binder) bool(v bool) { b.s.BindBool(b.next(), v) }

func (b *binder) float(v float64) { b.s.BindFloat(b.next(), v) }

func (b *binder) blob(v []byte) { b.s.BindBytes(b.next(), v) }

func (b *binder) null() { b.s.BindNull(b.next()) }

// text bounds and cleans what strangers wrote.
func (b *binder) text(v string) { b.whole(ledger.Text(v)) }

// url is for texts that a cut would make wrong: URLs, hosts, JSON.
func (b *binder) url(v string) { b.whole(ledger.Unbounded(v)) }

// whole binds a clean text, NULL if it is empty.
func (b *binder) whole(v string) {
	if v == "" {
		b.s.BindNull(b.next())
		return
	}
	b.s.BindText(b.next(), v)
}

// must binds a clean text to a column that is never NULL.
func (b *binder) must(v string) { b.s.BindText(b.next(), ledger.Unbounded(v)) }

// list binds texts as a JSON array, which is never NULL.
func (b *binder) list(all []string) {
	clean := make([]string, len(all))
	for i, v := range all {
		clean[i] = ledger.Unbounded(v)
	}
	var sb strings.Builder
	enc := json.NewEncoder(&sb)
	enc.SetEscapeHTML(false) // people read it
	if err := enc.Encode(clean); err != nil {
		panic(err) // texts always encode
	}
	b.s.BindText(b.next(), strings.TrimSpace(sb.String()))
}

func (b *binder) ms(t time.Time) {
	if t.IsZero() {
		b.s.BindNull(b.next())
		return
	}
	b.int(t.UnixMilli())
}

func (b *binder) us(t time.Time) {
	if t.IsZero() {
		b.s.BindNull(b.next())
		return
	}
	b.int(t.UnixMicro())
}

func (b *binder) durUS(d time.Duration) { b.intOrNull(d.Microseconds()) }

func (b *binder) fp(f weburl.Fingerprint) {
	var k [16]byte
	putFP(&k, f)
	b.s.BindBytes(b.next(), k[:])
}

// putFP writes the stored form: both halves big-endian, so that the blob in
// hex reads like the 128-bit number.
func putFP(k *[16]byte, f weburl.Fingerprint) {
	binary.BigEndian.PutUint64(k[:8], f.Hi)
	binary.BigEndian.PutUint64(k[8:], f.Lo)
}

// scanner reads a row's columns in order; NULL reads as the zero value.
type scanner struct {
	s *sqlite.Stmt
	i int
}

func (r *scanner) next() int { r.i++; return r.i - 1 }

func (r *scanner) int() int64     { return r.s.ColumnInt64(r.next()) }
func (r *scanner) float() float64 { return r.s.ColumnFloat(r.next()) }
func (r *scanner) bool() bool     { return r.int() != 0 }

func (r *scanner) text() string {
	i := r.next()
	if r.s.ColumnType(i) == sqlite.TypeNull {
		return ""
	}
	return r.s.ColumnText(i)
}

// maybe reads a truth that may be unknown.
func (r *scanner) maybe() *bool {
	i := r.next()
	if r.s.ColumnType(i) == sqlite.TypeNull {
		return nil
	}
	v := r.s.ColumnInt64(i) != 0
	return &v
}

// blob reads bytes into memory of their own.
func (r *scanner) blob() []byte {
	i := r.next()
	v := make([]byte, r.s.ColumnLen(i))
	return v[:r.s.ColumnBytes(i, v)]
}

// json is a text that the nouns keep as bytes.
func (r *scanner) json() []byte {
	if v := r.text(); v != "" {
		return []byte(v)
	}
	return nil
}

func (r *scanner) list() (all []string, err error) {
	if err := json.Unmarshal([]byte(r.text()), &all); err != nil {
		return nil, fmt.Errorf("damaged list: %w", err)
	}
	return all, nil
}

func (r *scanner) ms() time.Time {
	i := r.next()
	if r.s.ColumnType(i) == sqlite.TypeNull {
		return time.Time{}
	}
	return time.UnixMilli(r.s.ColumnInt64(i)).UTC()
}

func (r *scanner) us() time.Time {
	i := r.next()
	if r.s.ColumnType(i) == sqlite.TypeNull {
		return time.Time{}
	}
	return time.UnixMicro(r.s.ColumnInt64(i)).UTC()
}

func (r *scanner) durUS() time.Duration { return time.Duration(r.int()) * time.Microsecond }
func (r *scanner) durMS() time.Duration { return time.Duration(r.int()) * time.Millisecond }

func (r *scanner) fp() weburl.Fingerprint {
	var k [16]byte
	r.s.ColumnBytes(r.next(), k[:])
	return weburl.Fingerprint{Hi: binary.BigEndian.Uint64(k[:8]), Lo: binary.BigEndian.Uint64(k[8:])}
}

// outcome reads a name; one that a newer tiptoe wrote reads as Pending.
func (r *scanner) outcome() outcome.Outcome {
	name := r.text()
	if name == "ok" {
		return outcome.OK
	}
	o, _ := outcome.Parse(name)
	return o
}
