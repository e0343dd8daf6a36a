package ledger

import (
	"strings"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// Both databases have the same tables with the same columns. What a column
// holds is said once, in the Put and Scan functions of this package: they write
// to a Row and read from Values, which each database has in its own form.

// Table is a table's columns, in the order in which they are written and read.
type Table struct {
	Names []string
	Types []string // as PostgreSQL calls them; SQLite takes what comes
}

// NewTable reads "name type" lines.
func NewTable(lines string) Table {
	var t Table
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		t.Names = append(t.Names, name)
		t.Types = append(t.Types, strings.TrimSpace(kind))
	}
	return t
}

// List is the names, for SQL.
func (t Table) List() string { return strings.Join(t.Names, ", ") }

// From is the table without its first n columns.
func (t Table) From(n int) Table { return Table{t.Names[n:], t.Types[n:]} }

// Row takes the values of one row, in the order of the columns.
type Row interface {
	Null()
	Int(int64)
	Float(float64)
	Bool(bool)
	String(string) // clean
	Blob([]byte)
	FP(weburl.Fingerprint)
}

// Writer adds to a Row how the nouns become values: what they express by a zero
// value is stored as NULL by the methods that say so.
type Writer struct{ Row }

// Known is for numbers of which zero is a value: they are NULL only when there
// was no answer to measure.
func (w Writer) Known(v int64, ok bool) {
	if !ok {
		w.Null()
		return
	}
	w.Int(v)
}

// IntOrNull is for numbers of which zero is none.
func (w Writer) IntOrNull(v int64) { w.Known(v, v != 0) }

// Maybe is a truth that may be unknown.
func (w Writer) Maybe(v *bool) {
	if v == nil {
		w.Null()
		return
	}
	w.Bool(*v)
}

// Text bounds and cleans what strangers wrote; nothing is NULL.
func (w Writer) Text(s string) { w.whole(Text(s)) }

// URL is for texts that a cut would make wrong: URLs, hosts, JSON.
func (w Writer) URL(s string) { w.whole(Unbounded(s)) }

func (w Writer) whole(s string) {
	if s == "" {
		w.Null()
		return
	}
	w.String(s)
}

// Must is for a column that is never NULL.
func (w Writer) Must(s string) { w.String(Unbounded(s)) }

// Texts is a JSON array, which is never NULL.
func (w Writer) Texts(all []string) { w.String(jsonTexts(all)) }

// MS and US are times since 1970 in milliseconds and microseconds.
func (w Writer) MS(t time.Time) { w.Known(t.UnixMilli(), !t.IsZero()) }
func (w Writer) US(t time.Time) { w.Known(t.UnixMicro(), !t.IsZero()) }

// Micros is a duration.
func (w Writer) Micros(d time.Duration) { w.IntOrNull(d.Microseconds()) }

// ceil rounds up to whole units: a stored wait is never shorter than the wait.
func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

// Values are the columns of a row, one after the other; NULL reads as the zero
// value.
type Values interface {
	IsNull() bool // of the next; it is not taken
	Skip(n int)
	Int() int64
	Float() float64
	Bool() bool
	Text() string
	Blob() []byte // memory of its own; nil for NULL and for nothing
	FP() weburl.Fingerprint
}

// Reader is a Writer's other side.
type Reader struct{ Values }

// Maybe reads a truth that may be unknown.
func (r Reader) Maybe() *bool {
	if r.IsNull() {
		r.Skip(1)
		return nil
	}
	v := r.Bool()
	return &v
}

// Texts reads a JSON array.
func (r Reader) Texts() ([]string, error) { return parseTexts(r.Text()) }

// MS and US read times.
func (r Reader) MS() time.Time { return r.time(time.UnixMilli) }
func (r Reader) US() time.Time { return r.time(time.UnixMicro) }

func (r Reader) time(of func(int64) time.Time) time.Time {
	if r.IsNull() {
		r.Skip(1)
		return time.Time{}
	}
	return of(r.Int()).UTC()
}

// Micros and Millis read durations.
func (r Reader) Micros() time.Duration { return time.Duration(r.Int()) * time.Microsecond }
func (r Reader) Millis() time.Duration { return time.Duration(r.Int()) * time.Millisecond }

// Outcome reads a name; one that a newer tiptoe wrote reads as Pending.
func (r Reader) Outcome() outcome.Outcome {
	name := r.Text()
	if name == "ok" {
		return outcome.OK
	}
	o, _ := outcome.Parse(name)
	return o
}
