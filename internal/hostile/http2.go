package hostile

import (
	"io"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// HTTP/2 lets a server say "not this one, try again", and clients do, without
// telling: the two cases never answer, and count.

var http2Goaway = Case{
	Name: "http2-goaway", What: "answers every HTTP/2 request with GOAWAY, as if it had not been seen",
	serve: func(s *Server) {
		s.http2(func(f *http2.Framer, stream uint32) bool {
			f.WriteGoAway(0, http2.ErrCodeNo, nil)
			return false
		})
	},
}

var http2Refused = Case{
	Name: "http2-refused-stream", What: "answers every HTTP/2 request with REFUSED_STREAM",
	serve: func(s *Server) {
		s.http2(func(f *http2.Framer, stream uint32) bool {
			return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream) == nil
		})
	},
}

// http2 speaks just enough HTTP/2 to read requests, and lets answer do
// something about each; false ends the connection.
func (s *Server) http2(answer func(f *http2.Framer, stream uint32) bool) {
	s.secure([]string{http2.NextProtoTLS})
	s.accept(func(c *conn) {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(c.reader, preface); err != nil || string(preface) != http2.ClientPreface {
			return
		}
		f := http2.NewFramer(c, c.reader)
		f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		if f.WriteSettings() != nil {
			return
		}
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() && f.WriteSettingsAck() != nil {
					return
				}
			case *http2.PingFrame:
				if !frame.IsAck() && f.WritePing(true, frame.Data) != nil {
					return
				}
			case *http2.MetaHeadersFrame:
				s.note(frame.PseudoValue("method"), frame.PseudoValue("path"))
				if !answer(f, frame.StreamID) {
					return
				}
			}
		}
	})
}
