package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"strings"
	"time"

	"tiptoe/internal/ledger"
)

// A key is tt_<id>_<secret>: 60 public bits to find it by, 256 secret ones.
// The secret may hold an underscore, so the parts are told by their places.
const (
	keyPrefix    = "tt_"
	keyIDLen     = 12
	keySecretLen = 43
	keyLen       = len(keyPrefix) + keyIDLen + 1 + keySecretLen
)

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewKey makes a key. The text is to be shown once; what is kept of it is the
// hash. A key without a tenant is only good with the operator's scope.
func NewKey(tenant, name string, scopes []string, now time.Time) (text string, k ledger.Key) {
	secret := NewSecret()
	k = ledger.Key{ID: newID(), Tenant: tenant, Name: name, Scopes: scopes, Hash: hashSecret(secret), Created: now}
	return keyPrefix + k.ID + "_" + secret, k
}

// NewSecret is 256 random bits as text.
func NewSecret() string {
	var b [32]byte
	rand.Read(b[:]) // does not fail: the program dies instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// newID is 60 random bits as text.
func newID() string {
	var b [8]byte
	rand.Read(b[:])
	return idEncoding.EncodeToString(b[:])[:keyIDLen]
}

func hashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// parseKey splits a key's text. Its parts are not yet known to be good.
func parseKey(text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, keyPrefix)
	if !ok || len(text) != keyLen || rest[keyIDLen] != '_' {
		return "", "", false
	}
	return rest[:keyIDLen], rest[keyIDLen+1:], true
}

// level orders scopes: each includes those below it.
func level(scope string) int {
	switch scope {
	case ledger.ScopeRead:
		return 1
	case ledger.ScopeWrite:
		return 2
	case ledger.ScopeOperator:
		return 3
	}
	return 0
}

// levelOf is the highest of a key's scopes.
func levelOf(scopes []string) int {
	most := 0
	for _, s := range scopes {
		most = max(most, level(s))
	}
	return most
}
