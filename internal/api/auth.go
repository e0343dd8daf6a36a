package api

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"tiptoe/internal/ledger"
)

const (
	// keyTTL is how long a key that was found good is believed.
	keyTTL = 10 * time.Second
	// maxKnown bounds the keys that are remembered as good.
	maxKnown = 4096
	// touchEvery is the least time between two notes of a key's use.
	touchEvery = time.Minute
	// storeTimeout bounds what the API writes on its own account.
	storeTimeout = 10 * time.Second
)

// errUnauthorized is every reason not to let a caller in: none is told apart.
var errUnauthorized = errors.New("not authorized")

// caller is who asks.
type caller struct {
	key    ledger.Key
	tenant ledger.Tenant // zero for an operator's key that has none
	level  int
	remote string
	auth   string // the key's text, to look again while a stream is open
}

func (c *caller) operator() bool { return c.level == level(ledger.ScopeOperator) }

// rows is the tenant that the store is asked with: only its rows exist. For
// an operator all do.
func (c *caller) rows() string {
	if c.operator() {
		return ""
	}
	return c.tenant.ID
}

type callerKey struct{}

func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// keyring knows which keys are good.
type keyring struct {
	store keyStore
	now   func() time.Time

	mu    sync.Mutex
	known map[string]holder // by key ID; good ones only
	drops uint64            // counts forgetting, so that a look-up that began before it is not remembered

	touches chan ledger.Key
}

type keyStore interface {
	Key(ctx context.Context, id string) (ledger.Key, error)
	Tenant(ctx context.Context, id string) (ledger.Tenant, error)
	TouchKey(ctx context.Context, id string, at time.Time) error
}

type holder struct {
	key    ledger.Key
	tenant ledger.Tenant
	until  time.Time
}

func newKeyring(store keyStore, now func() time.Time) *keyring {
	return &keyring{store: store, now: now, known: make(map[string]holder), touches: make(chan ledger.Key, 64)}
}

// bearer takes the key's text from a request.
func bearer(r *http.Request) string {
	scheme, text, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}

// who finds the caller that a key's text belongs to. Errors other than
// errUnauthorized are the store's.
func (k *keyring) who(ctx context.Context, text string) (*caller, error) {
	id, secret, ok := parseKey(text)
	if !ok {
		return nil, errUnauthorized
	}
	hash := hashSecret(secret)
	now := k.now()
	k.mu.Lock()
	found, remembered := k.known[id]
	drops := k.drops
	k.mu.Unlock()
	if !remembered || !now.Before(found.until) {
		var err error
		if found, err = k.look(ctx, id); err != nil {
			return nil, err
		}
		remembered = false
	}
	// A key that does not exist has a zero hash, which nothing hashes to: it
	// costs the same comparison as one that does.
	want := found.key.Hash
	if len(want) != len(hash) {
		want = make([]byte, len(hash))
	}
	same := subtle.ConstantTimeCompare(want, hash) == 1
	c := &caller{key: found.key, tenant: found.tenant, level: levelOf(found.key.Scopes), auth: text}
	switch {
	case !same, !found.key.Revoked.IsZero(), c.level == 0, found.tenant.Disabled:
		return nil, errUnauthorized
	case found.key.Tenant == "" && !c.operator(): // its rows would be everybody's
		return nil, errUnauthorized
	case found.key.Tenant != found.tenant.ID:
		return nil, errUnauthorized
	}
	if !remembered {
		k.remember(found, drops)
		k.touch(found.key, now)
	}
	return c, nil
}

func (k *keyring) look(ctx context.Context, id string) (found holder, err error) {
	found.key, err = k.store.Key(ctx, id)
	if err != nil && !errors.Is(err, ledger.ErrNoKey) {
		return found, fmt.Errorf("look up key: %w", err)
	}
	if found.key.Tenant != "" {
		found.tenant, err = k.store.Tenant(ctx, found.key.Tenant)
		if err != nil && !errors.Is(err, ledger.ErrNoTenant) {
			return found, fmt.Errorf("look up tenant of key: %w", err)
		}
	}
	return found, nil
}

func (k *keyring) remember(found holder, drops uint64) {
	found.until = k.now().Add(keyTTL)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.drops != drops {
		return
	}
	if len(k.known) >= maxKnown {
		clear(k.known) // a few look-ups; no key is worth the bookkeeping of a better choice
	}
	k.known[found.key.ID] = found
}

// forget makes the next use of a key look into the store again. With a tenant
// it forgets all of that tenant's.
func (k *keyring) forget(keyID, tenant string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drops++
	delete(k.known, keyID)
	for id, e := range k.known {
		if tenant != "" && e.key.Tenant == tenant {
			delete(k.known, id)
		}
	}
}

// touch notes a key's use, some time, if somebody has the time: the caller
// does not wait for it.
func (k *keyring) touch(key ledger.Key, now time.Time) {
	if now.Sub(key.LastUsed) < touchEvery {
		return
	}
	key.LastUsed = now
	select {
	case k.touches <- key:
	default:
	}
}

// keepTouching writes what touch noted, until stop is closed.
func (k *keyring) keepTouching(stop <-chan struct{}, failed func(error)) {
	last := make(map[string]time.Time)
	for {
		select {
		case <-stop:
			return
		case key := <-k.touches:
			if key.LastUsed.Sub(last[key.ID]) < touchEvery {
				continue
			}
			if len(last) >= maxKnown {
				clear(last)
			}
			last[key.ID] = key.LastUsed
			ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
			if err := k.store.TouchKey(ctx, key.ID, key.LastUsed); err != nil {
				failed(fmt.Errorf("note the use of key %s: %w", key.ID, err))
			}
			cancel()
		}
	}
}
