package postgres

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

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
type shape struct{ ledger.Table }

// pageShape is a page's row between its place among those of its crawl in the
// batch, from 1, and its links.
var pageShape = shape{ledger.Table{
	Names: slices.Concat([]string{"nth"}, ledger.PageTable.Names, []string{"link_targets"}),
	Types: slices.Concat([]string{"bigint"}, ledger.PageTable.Types, []string{"bytea"}),
}}

// unnest is a FROM item that has the columns as t; its first array is the
// parameter $first.
func (s shape) unnest(first int) string {
	var sb strings.Builder
	for i, kind := range s.Types {
		if i > 0 {
			sb.WriteString(", ")
		}
		fmt.Fprintf(&sb, "$%d::%s[]", first+i, kind)
	}
	return "unnest(" + sb.String() + ") AS t (" + s.List() + ")"
}

// upsert stores rows, replacing those with the same key: the first columns.
// Rows must come in the order of their keys, each key once: then batches that
// overlap wait for each other instead of dying in a deadlock.
func (s shape) upsert(table string, keys int) string {
	return "INSERT INTO " + table + " (" + s.List() + ") SELECT " + s.List() + " FROM " + s.unnest(1) +
		" ON CONFLICT (" + strings.Join(s.Names[:keys], ", ") + ") DO UPDATE SET " + s.excluded(keys)
}

// excluded assigns all columns from the skip-th on from the refused row.
func (s shape) excluded(skip int) string {
	var sb strings.Builder
	for i, name := range s.Names[skip:] {
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
		r.columns = make([]column, len(s.Names))
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

func (r *rows) Null() { r.add(-1) }

func (r *rows) Int(v int64) {
	c := r.add(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(v))
}

func (r *rows) Float(v float64) {
	c := r.add(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, math.Float64bits(v))
}

func (r *rows) Bool(v bool) {
	c, b := r.add(1), byte(0)
	if v {
		b = 1
	}
	c.buf = append(c.buf, b)
}

func (r *rows) String(v string) {
	c := r.add(len(v))
	c.buf = append(c.buf, v...)
}

func (r *rows) Blob(v []byte) {
	c := r.add(len(v))
	c.buf = append(c.buf, v...)
}

func (r *rows) FP(f weburl.Fingerprint) {
	c := r.add(16)
	c.buf = ledger.AppendFP(c.buf, f)
}

func (r *rows) links(targets []uint64) {
	if len(targets) == 0 {
		r.Null()
		return
	}
	c := r.add(8 * len(targets))
	c.buf = ledger.EncodeLinks(c.buf, targets)
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
