package hostile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"strings"
	"time"
)

// flaw changes an otherwise good certificate.
type flaw func(*x509.Certificate)

// secure puts TLS in front of whatever serves next.
func (s *Server) secure(protocols []string, flaws ...flaw) {
	cert, leaf := certificate(flaws...)
	s.Roots = x509.NewCertPool()
	s.Roots.AddCert(leaf)
	s.listener = tls.NewListener(s.listener, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: protocols})
	s.URL = strings.Replace(s.URL, "http://", "https://", 1)
}

// certificate makes a self-signed certificate for the loopback address.
func certificate(flaws ...flaw) (tls.Certificate, *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // no randomness: nothing to test with
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "hostile.example"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, f := range flaws {
		f(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, leaf
}
