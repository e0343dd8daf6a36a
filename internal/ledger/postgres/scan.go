package postgres

import (
	"encoding/binary"
	"math"
	"time"

	"tiptoe/internal/outcome"
	"tiptoe/internal/weburl"
)

// scanner reads a row's columns in order, in the form in which they travel;
// NULL reads as the zero value. Its bytes are gone with the row.
type scanner struct {
	raw [][]byte
	i   int
}

func (r *scanner) next() []byte { r.i++; return r.raw[r.i-1] }

// isNull looks at the next column without taking it.
func (r *scanner) isNull() bool { return r.raw[r.i] == nil }

func (r *scanner) int() int64 {
	switch v := r.next(); len(v) {
	case 8:
		return int64(binary.BigEndian.Uint64(v))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v)))
	}
	return 0
}

func (r *scanner) float() float64 {
	if v := r.next(); len(v) == 8 {
		return math.Float64frombits(binary.BigEndian.Uint64(v))
	}
	return 0
}

func (r *scanner) bool() bool {
	v := r.next()
	return len(v) == 1 && v[0] == 1
}

func (r *scanner) text() string { return string(r.next()) }

// blob returns bytes of its own, nil for NULL and for nothing.
func (r *scanner) blob() []byte { return append([]byte(nil), r.next()...) }

func (r *scanner) ms() time.Time {
	if r.isNull() {
		r.i++
		return time.Time{}
	}
	return time.UnixMilli(r.int()).UTC()
}

func (r *scanner) us() time.Time {
	if r.isNull() {
		r.i++
		return time.Time{}
	}
	return time.UnixMicro(r.int()).UTC()
}

func (r *scanner) durUS() time.Duration { return time.Duration(r.int()) * time.Microsecond }
func (r *scanner) durMS() time.Duration { return time.Duration(r.int()) * time.Millisecond }

func (r *scanner) fp() weburl.Fingerprint {
	if v := r.next(); len(v) == 16 {
		return weburl.Fingerprint{Hi: binary.BigEndian.Uint64(v), Lo: binary.BigEndian.Uint64(v[8:])}
	}
	return weburl.Fingerprint{}
}

// outcome reads a name; one that a newer tiptoe wrote reads as Pending.
func (r *scanner) outcome() outcome.Outcome {
	v := r.next()
	if string(v) == "ok" {
		return outcome.OK
	}
	o, _ := outcome.Parse(string(v))
	return o
}
