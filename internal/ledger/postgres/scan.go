package postgres

import (
	"encoding/binary"
	"math"

	"tiptoe/internal/ledger"
	"tiptoe/internal/weburl"
)

// values are a row's columns in the form in which they travel. Its bytes are
// gone with the row.
type values struct {
	raw [][]byte
	i   int
}

func (v *values) next() []byte { v.i++; return v.raw[v.i-1] }

func (v *values) IsNull() bool { return v.raw[v.i] == nil }
func (v *values) Skip(n int)   { v.i += n }

func (v *values) Int() int64 {
	switch b := v.next(); len(b) {
	case 8:
		return int64(binary.BigEndian.Uint64(b))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	}
	return 0
}

func (v *values) Float() float64 {
	if b := v.next(); len(b) == 8 {
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (v *values) Bool() bool {
	b := v.next()
	return len(b) == 1 && b[0] == 1
}

func (v *values) Text() string           { return string(v.next()) }
func (v *values) Blob() []byte           { return append([]byte(nil), v.next()...) }
func (v *values) FP() weburl.Fingerprint { return ledger.ParseFP(v.next()) }

// reader reads one row.
func reader(raw [][]byte) ledger.Reader { return ledger.Reader{Values: &values{raw: raw}} }
