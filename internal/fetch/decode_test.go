package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"tiptoe/internal/outcome"
)

func encode(coding string, plain []byte) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	case "deflate":
		w = zlib.NewWriter(&b)
	case "bare deflate":
		w, _ = flate.NewWriter(&b, 6)
	}
	w.Write(plain)
	w.Close()
	return b.Bytes()
}

// codedServer answers /<name> with the body and label of that name.
type codedBody struct {
	label []string
	body  []byte
}

func codedServer(t testing.TB, bodies map[string]codedBody) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := bodies[strings.TrimPrefix(r.URL.Path, "/")]
		w.Header()["Content-Encoding"] = b.label
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Query().Has("chunked") {
			w.(http.Flusher).Flush()
		}
		w.Write(b.body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/"
}

func TestTheLibrarysErrorForTrailingBytesIsKnown(t *testing.T) {
	_, err := io.ReadAll(brotli.NewReader(bytes.NewReader([]byte("\x06x"))))
	if brotliTrailing == nil || err != brotliTrailing || brotliTrailing == io.EOF {
		t.Fatalf("%v, %v", brotliTrailing, err)
	}
}

func TestEveryCodingIsDecodedAndTheConnectionIsKept(t *testing.T) {
	plain := bytes.Repeat([]byte("tiptoe, tiptoe; "), 5000)
	twice := encode("br", encode("gzip", plain))
	two := append(encode("gzip", plain[:1000]), encode("gzip", plain[1000:])...)
	bodies := map[string]codedBody{
		"identity":  {[]string{"identity"}, plain},
		"gzip":      {[]string{"gzip"}, encode("gzip", plain)},
		"x-gzip":    {[]string{"X-GZip"}, encode("gzip", plain)},
		"br":        {[]string{"br"}, encode("br", plain)},
		"zstd":      {[]string{"zstd"}, encode("zstd", plain)},
		"deflate":   {[]string{"deflate"}, encode("deflate", plain)},
		"bare":      {[]string{"deflate"}, encode("bare deflate", plain)},
		"chain":     {[]string{"gzip, br"}, twice},
		"two-lines": {[]string{"gzip", "br"}, twice},
		"members":   {[]string{"gzip"}, two},
		"trailing":  {[]string{"gzip"}, append(encode("gzip", plain), "\n<!-- cached -->"...)},
		"brtrail":   {[]string{"br"}, append(encode("br", plain), "\n\n"...)},
		"zstdtrail": {[]string{"zstd"}, append(encode("zstd", plain), "garbage"...)},
	}
	base := codedServer(t, bodies)
	c := openClient(t)
	first := true
	for range 2 { // the second round meets recycled decoders
		for name, b := range bodies {
			for _, q := range []string{"", "?chunked"} {
				r, body, err := get(t, c, base+name+q)
				if err != nil || body != string(plain) {
					t.Errorf("%s%s: %d bytes, %v", name, q, len(body), err)
					continue
				}
				if r.WireBytes() != int64(len(b.body)) {
					t.Errorf("%s%s: %d bytes on the wire, want %d", name, q, r.WireBytes(), len(b.body))
				}
				if !first && !r.Timing().Reused {
					t.Errorf("%s%s: the connection was not kept", name, q)
				}
				first = false
			}
		}
	}
}

func TestAnEmptyBodyIsEmptyUnderAnyLabel(t *testing.T) {
	bodies := map[string]codedBody{}
	for _, l := range []string{"gzip", "br", "zstd", "deflate"} {
		bodies[l] = codedBody{[]string{l}, nil}
	}
	base := codedServer(t, bodies)
	c := openClient(t)
	for l := range bodies {
		for _, q := range []string{"", "?chunked"} {
			if _, body, err := get(t, c, base+l+q); err != nil || body != "" {
				t.Errorf("%s%s: %q %v", l, q, body, err)
			}
		}
	}
}

func TestWrongLabelsAreProtocolErrorsThatKeepTheHeaders(t *testing.T) {
	plain := []byte("<html>just plain text, long enough to be no header by luck</html>")
	gz := encode("gzip", bytes.Repeat(plain, 100))
	broken := bytes.Clone(gz)
	broken[len(broken)-5] ^= 0xff // checksum
	bodies := map[string]codedBody{
		"gzip-plain":    {[]string{"gzip"}, plain},
		"br-plain":      {[]string{"br"}, plain},
		"zstd-plain":    {[]string{"zstd"}, plain},
		"deflate-plain": {[]string{"deflate"}, plain},
		"cut":           {[]string{"gzip"}, gz[:len(gz)/2]},
		"cut-br":        {[]string{"br"}, encode("br", bytes.Repeat(plain, 100))[:30]},
		"cut-zstd":      {[]string{"zstd"}, encode("zstd", bytes.Repeat(plain, 100))[:30]},
		"one-byte":      {[]string{"deflate"}, []byte{0x78}},
		"checksum":      {[]string{"gzip"}, broken},
		"unknown":       {[]string{"compress"}, plain},
		"three":         {[]string{"gzip, gzip, gzip"}, plain},
	}
	base := codedServer(t, bodies)
	c := openClient(t)
	for name := range bodies {
		r, err := c.Do(t.Context(), &Request{URL: mustURL(t, base+name)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Status != 200 || r.Header.Get("Content-Type") != "text/html" {
			t.Errorf("%s: %d %v", name, r.Status, r.Header)
		}
		_, err = ReadAll(r, nil)
		r.Close()
		var e *Error
		if !errors.As(err, &e) || e.Outcome != outcome.Protocol || e.Op != "body" {
			t.Errorf("%s: %v", name, err)
		}
		if _, again := r.Body.Read(make([]byte, 1)); again != err {
			t.Errorf("%s: the failure did not stick: %v", name, again)
		}
	}
}

func TestABodyOfExactlyTheCapPassesAndOneByteMoreDoesNot(t *testing.T) {
	for _, size := range []int{1000, 1001} {
		plain := bytes.Repeat([]byte("x"), size)
		base := codedServer(t, map[string]codedBody{
			"plain": {nil, plain}, "gzip": {[]string{"gzip"}, encode("gzip", plain)},
		})
		c := newClient(t, Config{AllowPrivate: true, MaxBody: 1000})
		for _, path := range []string{"plain", "plain?chunked", "gzip"} {
			_, body, err := get(t, c, base+path)
			if size == 1000 {
				if err != nil || len(body) != size {
					t.Errorf("%s: %d bytes, %v", path, len(body), err)
				}
				continue
			}
			wantError(t, err, outcome.TooLarge, "body")
			want := 1000
			if path == "plain" {
				want = 0 // its length was declared: nothing of it is fetched
			}
			if len(body) != want {
				t.Errorf("%s: %d bytes before the cap, want %d", path, len(body), want)
			}
		}
	}
}

// zeros compresses n zero bytes without holding them.
func zeros(coding string, n int64) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w, _ = gzip.NewWriterLevel(&b, 6)
	case "br":
		w = brotli.NewWriterLevel(&b, 2)
	case "zstd":
		w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	}
	io.CopyN(w, zeroReader{}, n)
	w.Close()
	return b.Bytes()
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestABombIsCutAtTheCap(t *testing.T) {
	const bomb = 1 << 20
	members := bytes.Repeat(encode("gzip", nil), 20_000) // 460 KB that decode to nothing
	bodies := map[string]codedBody{
		"gzip":            {[]string{"gzip"}, zeros("gzip", bomb)},
		"br":              {[]string{"br"}, zeros("br", bomb)},
		"zstd":            {[]string{"zstd"}, zeros("zstd", bomb)},
		"nested":          {[]string{"gzip, br"}, encode("br", zeros("gzip", bomb))},
		"nothing":         {[]string{"gzip, br"}, encode("br", members)},
		"endless?chunked": {[]string{"gzip"}, members},
	}
	bodies["endless"] = bodies["endless?chunked"]
	base := codedServer(t, bodies)
	c := newClient(t, Config{AllowPrivate: true, MaxBody: 200_000})
	buf := make([]byte, 0, 210_000)
	for name := range bodies {
		r, err := c.Do(t.Context(), &Request{URL: mustURL(t, base+name)})
		if err != nil {
			t.Fatal(err)
		}
		b, err := ReadAll(r, buf)
		r.Close()
		wantError(t, err, outcome.TooLarge, "body")
		if len(b) > 200_000 || cap(b) != cap(buf) {
			t.Errorf("%s: %d bytes came out", name, len(b))
		}
	}
}

func TestAZstdWindowBeyondTheStandardIsRefused(t *testing.T) {
	var b bytes.Buffer
	w, _ := zstd.NewWriter(&b, zstd.WithWindowSize(64<<20), zstd.WithEncoderConcurrency(1))
	io.CopyN(w, zeroReader{}, 1<<20)
	w.Flush()
	io.CopyN(w, zeroReader{}, 1<<20)
	w.Close()
	base := codedServer(t, map[string]codedBody{"w": {[]string{"zstd"}, b.Bytes()}})
	_, _, err := get(t, openClient(t), base+"w")
	wantError(t, err, outcome.Protocol, "body")
}

func TestReadAllReusesTheCallersBuffer(t *testing.T) {
	base := codedServer(t, map[string]codedBody{"p": {nil, bytes.Repeat([]byte("y"), 5000)}})
	c := openClient(t)
	buf := make([]byte, 0, 8<<10)
	for _, q := range []string{"", "?chunked"} {
		r, err := c.Do(t.Context(), &Request{URL: mustURL(t, base+"p"+q)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadAll(r, buf)
		r.Close()
		if err != nil || len(got) != 5000 || &got[0] != &buf[:1][0] {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	if got, err := ReadAll(&Response{Body: strings.NewReader("built by hand"), ContentLength: -1}, nil); err != nil || string(got) != "built by hand" {
		t.Fatalf("%q %v", got, err)
	}
}

func FuzzDecoders(f *testing.F) {
	for _, l := range []string{"gzip", "br", "zstd", "deflate"} {
		f.Add(l, encode(l, []byte("some plain text some plain text")))
	}
	f.Add("gzip, br", encode("br", encode("gzip", []byte("twice"))))
	f.Add("deflate", encode("bare deflate", []byte("bare")))
	var d decoders
	f.Fuzz(func(t *testing.T, label string, body []byte) {
		codings, err := parseCodings([]string{label})
		if err != nil || len(codings) == 0 {
			return
		}
		const limit = 1 << 20
		c := d.open(bytes.NewReader(body), codings, limit)
		n, err := io.Copy(io.Discard, c)
		if n > limit+decoderBuf*4 {
			t.Fatalf("%d bytes came out", n)
		}
		if err == nil && len(body) > 0 && n == 0 && label == "gzip" && len(body) < 18 {
			t.Fatal("a stream too short to be gzip was taken for one")
		}
		d.release(c)
		// A decoder that met garbage must serve the next body.
		good := encode("gzip", []byte("next"))
		next := d.open(bytes.NewReader(good), []string{"gzip"}, limit)
		if b, err := io.ReadAll(next); err != nil || string(b) != "next" {
			t.Fatal(fmt.Sprint(b, err))
		}
		d.release(next)
	})
}
