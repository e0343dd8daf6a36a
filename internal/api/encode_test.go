package api

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// random fills a value with what is ordinary, odd or missing.
func random(r *rand.Rand, v reflect.Value) {
	if v.Type() == reflect.TypeFor[Stamp]() {
		v.Set(reflect.ValueOf(Stamp(time.UnixMilli(r.Int64N(4e12)).In(time.FixedZone("", r.IntN(3600))))))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			random(r, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			random(r, v.Field(i))
		}
	case reflect.String:
		texts := []string{"", "https://h.example/a?b=1", "https://h.example/?a=1&b=<2>", "Zürich – \u2028 \"q\" \\ \x00 \x7f", "\xff\xfe"}
		v.SetString(texts[r.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, -7, 200, 1 << 60}[r.IntN(5)])
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, 0.3, -12.345, 1e-9, 1e25, 123456.789}[r.IntN(7)])
	default:
		panic(v.Kind())
	}
}

func Test_a_list_of_pages_is_encoded_as_by_encoding_json(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 300 {
		var l List[Page]
		if n > 0 {
			l.Items = make([]Page, n%4)
		}
		random(r, reflect.ValueOf(&l.Next).Elem())
		for i := range l.Items {
			random(r, reflect.ValueOf(&l.Items[i]).Elem())
		}
		var got, want bytes.Buffer
		if err := encode(&got, l); err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(&want).Encode(&l); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatalf("got  %s\nwant %s", &got, &want)
		}
	}
}
