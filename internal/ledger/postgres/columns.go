package postgres

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// A batch goes to the server as one statement a table, with one array a
// column, which unnest turns back into rows. A column is such an array, built
// row by row in the form in which it travels: the driver's way, a slice of
// values that may be NULL, would cost an allocation or two a value.
type column struct {
	buf  []byte
	rows int
}

// shape is a table's columns for writing.
type shape struct {
	names []string
	types []string // as PostgreSQL calls them
}

// newShape reads "name type" lines.
func newShape(lines string) shape {
	var s shape
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		s.names = append(s.names, name)
		s.types = append(s.types, strings.TrimSpace(kind))
	}
	return s
}

// unnest is a FROM item that has the columns as t; its first array is the
// parameter $first.
func (s shape) unnest(first int) string {
	var sb strings.Builder
	for i, kind := range s.types {
		if i > 0 {
			sb.WriteString(", ")
		}
		fmt.Fprintf(&sb, "$%d::%s[]", first+i, kind)
	}
	return "unnest(" + sb.String() + ") AS t (" + s.list() + ")"
}

func (s shape) list() string { return strings.Join(s.names, ", ") }

// upsert stores rows, replacing those with the same key: the first columns.
// Rows must come in the order of their keys, each key once: then batches that
// overlap wait for each other instead of dying in a deadlock.
func (s shape) upsert(table string, keys int) string {
	return "INSERT INTO " + table + " (" + s.list() + ") SELECT " + s.list() + " FROM " + s.unnest(1) +
		" ON CONFLICT (" + strings.Join(s.names[:keys], ", ") + ") DO UPDATE SET " + s.excluded(keys)
}

// excluded assigns all columns from the skip-th on from the refused row.
func (s shape) excluded(skip int) string {
	var sb strings.Builder
	for i, name := range s.names[skip:] {
		if i > 0 {
			sb.WriteString(", ")
		}
		sb.WriteString(name + " = excluded." + name)
	}
	return sb.String()
}

// rows are the values for one statement.
type rows struct {
	columns []column
	next    int // the column of the next value
}

// arrayHeader: dimensions, whether there may be NULLs, the element's type, the
// number of elements, the first one's index; four bytes each.
const arrayHeader = 20

// reset makes r ready for a batch of rows of a shape and keeps its memory.
func (r *rows) reset(s shape) {
	if r.columns == nil {
		r.columns = make([]column, len(s.names))
	}
	for i := range r.columns {
		c := &r.columns[i]
		c.buf, c.rows = append(c.buf[:0], make([]byte, arrayHeader)...), 0
	}
	r.next = 0
}

// queue adds a statement with these rows to a batch, if there are any. args go
// before the arrays.
func (r *rows) queue(b *pgx.Batch, sql string, args ...any) {
	if r.columns[0].rows == 0 {
		return
	}
	for i := range r.columns {
		args = append(args, &r.columns[i])
	}
	b.Queue(sql, args...)
}

// add begins a value of n bytes in the row's next column.
func (r *rows) add(n int) *column {
	c := &r.columns[r.next]
	if r.next++; r.next == len(r.columns) {
		r.next = 0
	}
	c.rows++
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(n))
	return c
}

func (r *rows) null() { r.add(-1) }

func (r *rows) int(v int64) {
	c := r.add(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(v))
}

// known is for numbers of which zero is a value: they are NULL only when
// there was no answer to measure.
func (r *rows) known(v int64, ok bool) {
	if !ok {
		r.null()
		return
	}
	r.int(v)
}

func (r *rows) intOrNull(v int64) { r.known(v, v != 0) }

func (r *rows) float(v float64) {
	c := r.add(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, math.Float64bits(v))
}

func (r *rows) bool(v bool) {
	c, b := r.add(1), byte(0)
	if v {
		b = 1
	}
	c.buf = append(c.buf, b)
}

// text bounds and cleans what strangers wrote.
func (r *rows) text(v string) { r.whole(ledger.Text(v)) }

// url is for texts that a cut would make wrong: URLs, hosts, JSON.
func (r *rows) url(v string) { r.whole(ledger.Unbounded(v)) }

// whole adds a clean text, NULL if it is empty.
func (r *rows) whole(v string) {
	if v == "" {
		r.null()
		return
	}
	c := r.add(len(v))
	c.buf = append(c.buf, v...)
}

// must adds a text to a column that is never NULL.
func (r *rows) must(v string) {
	v = ledger.Unbounded(v)
	c := r.add(len(v))
	c.buf = append(c.buf, v...)
}

func (r *rows) ms(t time.Time) { r.known(t.UnixMilli(), !t.IsZero()) }
func (r *rows) us(t time.Time) { r.known(t.UnixMicro(), !t.IsZero()) }

func (r *rows) durUS(d time.Duration) { r.intOrNull(d.Microseconds()) }

func (r *rows) fp(f weburl.Fingerprint) {
	c := r.add(16)
	c.buf = appendFP(c.buf, f)
}

func (r *rows) links(targets []uint64) {
	if len(targets) == 0 {
		r.null()
		return
	}
	c := r.add(8 * len(targets))
	c.buf = ledger.EncodeLinks(c.buf, targets)
}

// appendFP appends the stored form: both halves big-endian, so that the blob
// in hex reads like the 128-bit number.
func appendFP(b []byte, f weburl.Fingerprint) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, f.Hi), f.Lo)
}

// registerColumns teaches a connection to take a column for an array.
func registerColumns(m *pgtype.Map) {
	for oid, element := range map[uint32]uint32{
		pgtype.Int8ArrayOID: pgtype.Int8OID, pgtype.TextArrayOID: pgtype.TextOID, pgtype.ByteaArrayOID: pgtype.ByteaOID,
		pgtype.BoolArrayOID: pgtype.BoolOID, pgtype.Float8ArrayOID: pgtype.Float8OID,
	} {
		t, _ := m.TypeForOID(oid)
		m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: columnCodec{t.Codec, element}})
	}
}

// columnCodec is the driver's codec for an array that also takes a *column.
type columnCodec struct {
	pgtype.Codec
	element uint32
}

func (c columnCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(*column); ok && format == pgtype.BinaryFormatCode {
		return columnPlan(c.element)
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type columnPlan uint32

func (element columnPlan) Encode(value any, buf []byte) ([]byte, error) {
	c := value.(*column)
	h := c.buf[:arrayHeader]
	binary.BigEndian.PutUint32(h, 1)
	binary.BigEndian.PutUint32(h[4:], 1)
	binary.BigEndian.PutUint32(h[8:], uint32(element))
	binary.BigEndian.PutUint32(h[12:], uint32(c.rows))
	binary.BigEndian.PutUint32(h[16:], 1)
	return append(buf, c.buf...), nil
}
