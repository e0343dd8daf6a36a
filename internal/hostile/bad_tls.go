package hostile

import (
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"time"
)

// badCertificate are certificates that no client should accept.
var (
	selfSigned = badCertificate("self-signed", "a certificate nobody vouches for")
	expired    = badCertificate("expired", "a certificate that ended yesterday, issued by itself", func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = c.NotBefore.Add(-48*time.Hour), c.NotAfter.Add(-24*time.Hour)
	})
	wrongName   = badCertificate("wrong-name", "a certificate for another address, issued by itself", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 1)} })
	tlsRubbish  = Case{Name: "tls-rubbish", What: "plain HTTP where TLS was announced", serve: plainForTLS}
	tlsTrickle  = Case{Name: "tls-trickle", What: "one byte of the TLS handshake an Interval", serve: slowHandshake}
	tlsSilence  = Case{Name: "tls-silence", What: "accepts and never answers the TLS handshake", serve: silentHandshake}
	recordStart = "\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03" // a server hello of 16 KiB begins
)

func badCertificate(name, what string, flaws ...flaw) Case {
	return Case{
		Name: name, What: what,
		serve: func(s *Server) {
			s.secure([]string{"http/1.1"}, flaws...)
			s.web(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(page)) })
		},
	}
}

func plainForTLS(s *Server) {
	s.URL = strings.Replace(s.URL, "http://", "https://", 1)
	s.accept(func(c *conn) {
		c.sendf("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		c.hold()
	})
}

func slowHandshake(s *Server) {
	s.URL = strings.Replace(s.URL, "http://", "https://", 1)
	s.accept(func(c *conn) {
		if !c.trickle(recordStart) {
			return
		}
		for c.trickle("\x00") {
		}
	})
}

func silentHandshake(s *Server) {
	s.URL = strings.Replace(s.URL, "http://", "https://", 1)
	s.accept(func(c *conn) { c.hold() })
}
