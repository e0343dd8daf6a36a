package fetch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const (
	maxCodings = 2
	// RFC 9659: a zstd body on the web needs no larger window.
	zstdWindow = 8 << 20
	decoderBuf = 16 << 10
)

var acceptEncoding = []string{"zstd, gzip, br"}

// brotliTrailing is the library's error for bytes behind a complete stream.
// It has no exported name, so a complete empty stream (the byte 6) with a byte
// behind it is asked for it.
var brotliTrailing = func() error {
	_, err := brotli.NewReader(strings.NewReader("\x06x")).Read(make([]byte, 1))
	return err
}()

// parseCodings reads Content-Encoding into the order of decoding, which is
// the reverse of the order of writing.
func parseCodings(fields []string) ([]string, error) {
	var codings []string
	for _, f := range fields {
		for item := range strings.SplitSeq(f, ",") {
			name := strings.ToLower(strings.TrimSpace(item))
			switch name {
			case "", "identity", "none":
				continue
			case "x-gzip":
				name = "gzip"
			case "gzip", "br", "zstd", "deflate":
			default:
				if len(name) > 32 {
					name = name[:32]
				}
				return nil, &reason{fmt.Sprintf("unknown content coding %q", name), nil}
			}
			if len(codings) == maxCodings {
				return nil, &reason{"more than two content codings", nil}
			}
			codings = append([]string{name}, codings...)
		}
	}
	return codings, nil
}

// decoders lends decoders. They are kept by the client and not by the
// package, because a zstd decoder holds channels, and channels must not
// wander between the bubbles of tests in virtual time.
type decoders struct {
	stages [4]sync.Pool // by coding
}

var codingIndex = map[string]int{"gzip": 0, "br": 1, "zstd": 2, "deflate": 3}

// stage is one decoder with its input buffer. The buffer lets it look at the
// first bytes without losing them.
type stage struct {
	index int
	in    *bufio.Reader
	out   io.Reader // nil until the first read
	limit int64     // bytes it may put out
	wrote bool      // anything put out

	gzip *gzip.Reader
	br   *brotli.Reader
	zstd *zstd.Decoder
	zlib io.ReadCloser
	raw  io.ReadCloser
}

// chain is the stages of one body, the last one first.
type chain struct {
	stages [maxCodings]*stage
	n      int
}

// open builds the decoders for a body. Each stage may put out limit bytes at
// most, so a bomb inside a bomb is cut as well.
func (d *decoders) open(src io.Reader, codings []string, limit int64) *chain {
	c := &chain{n: len(codings)}
	for i, name := range codings {
		index := codingIndex[name]
		s, _ := d.stages[index].Get().(*stage)
		if s == nil {
			s = &stage{index: index, in: bufio.NewReaderSize(nil, decoderBuf)}
		}
		s.in.Reset(src)
		s.limit, s.wrote = limit, false
		c.stages[i] = s
		src = s
	}
	return c
}

// release takes the decoders back.
func (d *decoders) release(c *chain) {
	for i, s := range c.stages[:c.n] {
		s.in.Reset(nil)
		s.out = nil
		if s.zstd != nil {
			_ = s.zstd.Reset(nil) // lets go of the input; cannot fail
		}
		d.stages[s.index].Put(s)
		c.stages[i] = nil
	}
	c.n = 0
}

func (c *chain) Read(p []byte) (int, error) { return c.stages[c.n-1].Read(p) }

func (s *stage) Read(p []byte) (int, error) {
	if s.out == nil {
		// An empty body is empty under any label.
		if _, err := s.in.Peek(1); err != nil {
			return 0, err
		}
		if err := s.start(); err != nil {
			return 0, unexpected(err)
		}
	}
	n, err := s.out.Read(p)
	s.limit -= int64(n)
	s.wrote = s.wrote || n > 0
	switch {
	case s.limit < 0:
		return n, errRawTooLarge
	case err == nil || err == io.EOF:
		return n, err
	case errors.Is(err, brotliTrailing), s.wrote && (errors.Is(err, gzip.ErrHeader) || errors.Is(err, zstd.ErrMagicMismatch)):
		// The stream was complete; what follows is not another one.
		return n, io.EOF
	}
	return n, unexpected(err)
}

// unexpected keeps the end of the input inside a stream from looking like the
// end of the body.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *stage) start() (err error) {
	switch s.index {
	case 0:
		if s.gzip == nil {
			s.gzip = new(gzip.Reader)
		}
		err, s.out = s.gzip.Reset(s.in), s.gzip
	case 1:
		if s.br == nil {
			s.br = brotli.NewReader(nil)
		}
		err, s.out = s.br.Reset(s.in), s.br
	case 2:
		if s.zstd == nil {
			s.zstd, err = zstd.NewReader(nil,
				zstd.WithDecoderConcurrency(1), // no goroutines
				zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(zstdWindow))
			if err != nil {
				return err
			}
		}
		err, s.out = s.zstd.Reset(s.in), s.zstd
	case 3:
		err = s.startDeflate()
	}
	if err != nil {
		s.out = nil
	}
	return err
}

// startDeflate tells the coding as specified, with the zlib wrapper, from the
// bare stream that some servers send: the wrapper's first two bytes are a
// multiple of 31 and name the method 8.
func (s *stage) startDeflate() (err error) {
	head, err := s.in.Peek(2)
	if len(head) < 2 {
		return err
	}
	if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		if s.zlib == nil {
			s.zlib, err = zlib.NewReader(s.in)
		} else {
			err = s.zlib.(zlib.Resetter).Reset(s.in, nil)
		}
		s.out = s.zlib
		return err
	}
	if s.raw == nil {
		s.raw = flate.NewReader(s.in)
	} else {
		err = s.raw.(flate.Resetter).Reset(s.in, nil)
	}
	s.out = s.raw
	return err
}
