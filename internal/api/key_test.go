package api

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/ledger"
)

func Test_a_key_has_256_secret_bits_and_only_their_hash_is_kept(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		text, k := NewKey("ann", "n", []string{ledger.ScopeRead}, time.Now())
		id, secret, ok := parseKey(text)
		if !ok || len(text) != 59 || id != k.ID || len(id) != 12 || len(secret) != 43 || strings.ToLower(id) != id {
			t.Fatalf("%q", text)
		}
		if seen[id] || seen[secret] {
			t.Fatal("the same twice")
		}
		seen[id], seen[secret] = true, true
		if string(k.Hash) != string(hashSecret(secret)) || strings.Contains(string(k.Hash), secret) || len(k.Hash) != 32 {
			t.Fatal("the hash")
		}
	}
}

func Test_what_is_no_key_is_not_taken_for_one(t *testing.T) {
	text, _ := NewKey("ann", "", nil, time.Now())
	for _, s := range []string{"", "tt_", "tt", text + "x", text[1:], text[:58], strings.Replace(text, "tt_", "xx_", 1), text[:15] + "-" + text[16:], strings.Repeat("_", 59)} {
		if _, _, ok := parseKey(s); ok {
			t.Errorf("%q", s)
		}
	}
}

// counting is a store of keys that counts and can be held up.
type counting struct {
	mu      sync.Mutex
	keys    map[string]ledger.Key
	tenants map[string]ledger.Tenant
	looks   int
	touches []time.Time
	touched chan bool
	hold    func()
	err     error
}

func (c *counting) Key(_ context.Context, id string) (ledger.Key, error) {
	c.mu.Lock()
	c.looks++
	k, ok := c.keys[id]
	err, hold := c.err, c.hold
	c.mu.Unlock()
	if hold != nil {
		hold()
	}
	if err == nil && !ok {
		err = ledger.ErrNoKey
	}
	return k, err
}

func (c *counting) Tenant(_ context.Context, id string) (ledger.Tenant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.tenants[id]
	if !ok {
		return t, ledger.ErrNoTenant
	}
	return t, nil
}

func (c *counting) TouchKey(_ context.Context, id string, at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touches = append(c.touches, at)
	k := c.keys[id]
	k.LastUsed = at
	c.keys[id] = k
	c.touched <- true
	return nil
}

func newCounting() (*counting, string) {
	text, k := NewKey("ann", "", []string{ledger.ScopeWrite}, time.Now())
	return &counting{keys: map[string]ledger.Key{k.ID: k}, tenants: map[string]ledger.Tenant{"ann": {ID: "ann"}}, touched: make(chan bool, 100)}, text
}

func Test_a_good_key_is_looked_up_once_in_ten_seconds_and_its_use_noted_once_a_minute(t *testing.T) {
	store, text := newCounting()
	clock := newClock()
	ring := newKeyring(store, clock.now)
	stop := make(chan struct{})
	ended := make(chan bool)
	go func() { ring.keepTouching(stop, func(err error) { t.Error(err) }); close(ended) }()
	for i := range 130 { // seconds
		for range 10 {
			if c, err := ring.who(t.Context(), text); err != nil || c.tenant.ID != "ann" {
				t.Fatal(err)
			}
		}
		if i%60 == 0 {
			<-store.touched
		}
		clock.advance(time.Second)
	}
	close(stop)
	<-ended
	if store.looks != 13 || len(store.touches) != 3 {
		t.Errorf("%d look-ups, notes at %v", store.looks, store.touches)
	}
}

func Test_a_crowd_of_first_uses_is_noted_once(t *testing.T) {
	store, text := newCounting()
	clock := newClock()
	ring := newKeyring(store, clock.now)
	id, _, _ := parseKey(text)
	for range 10 { // each looked the key up before the first note was written
		ring.touch(store.keys[id], clock.now())
	}
	clock.advance(touchEvery)
	ring.touch(store.keys[id], clock.now())
	stop := make(chan struct{})
	ended := make(chan bool)
	go func() { ring.keepTouching(stop, func(err error) { t.Error(err) }); close(ended) }()
	<-store.touched
	<-store.touched
	close(stop)
	<-ended
	if len(store.touches) != 2 {
		t.Errorf("noted at %v", store.touches)
	}
}

func Test_a_wrong_secret_is_never_remembered_and_does_not_profit_from_a_good_one(t *testing.T) {
	store, text := newCounting()
	ring := newKeyring(store, newClock().now)
	wrong := text[:58] + map[bool]string{true: "A", false: "B"}[text[58] != 'A']
	for range 3 {
		if _, err := ring.who(t.Context(), wrong); !errors.Is(err, errUnauthorized) {
			t.Fatal(err)
		}
	}
	if len(ring.known) != 0 || store.looks != 3 {
		t.Errorf("%d remembered, %d look-ups", len(ring.known), store.looks)
	}
	if _, err := ring.who(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.who(t.Context(), wrong); !errors.Is(err, errUnauthorized) {
		t.Error("a good key's memory lets a wrong one in")
	}
}

func Test_a_key_that_is_revoked_while_it_is_looked_up_is_not_remembered(t *testing.T) {
	store, text := newCounting()
	ring := newKeyring(store, newClock().now)
	id, _, _ := parseKey(text)
	store.hold = func() { // after the row was read
		store.mu.Lock()
		k := store.keys[id]
		k.Revoked = time.Now()
		store.keys[id] = k
		store.hold = nil
		store.mu.Unlock()
		ring.forget(id, "")
	}
	if _, err := ring.who(t.Context(), text); err != nil {
		t.Fatal(err) // it was good when it was asked for
	}
	if _, err := ring.who(t.Context(), text); !errors.Is(err, errUnauthorized) {
		t.Error("the revoked key is remembered as good")
	}
}

func Test_keys_of_disabled_and_vanished_tenants_are_refused(t *testing.T) {
	store, text := newCounting()
	ring := newKeyring(store, newClock().now)
	store.tenants["ann"] = ledger.Tenant{ID: "ann", Disabled: true}
	if _, err := ring.who(t.Context(), text); !errors.Is(err, errUnauthorized) {
		t.Error("disabled", err)
	}
	delete(store.tenants, "ann")
	if _, err := ring.who(t.Context(), text); !errors.Is(err, errUnauthorized) {
		t.Error("vanished", err)
	}
	store.err = errors.New("no database")
	if _, err := ring.who(t.Context(), text); err == nil || errors.Is(err, errUnauthorized) {
		t.Error("a store that fails is not the key's fault:", err)
	}
}

func Test_a_revoked_key_and_a_disabled_tenant_are_refused_at_once(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		second := decode[NewKeyView](w, w.do(w.ann, "POST", "/v1/keys", `{"name":"second"}`), 201)
		if strings.Join(second.Scopes, " ") != "read write" || !strings.HasPrefix(second.Text, "tt_"+second.ID+"_") {
			t.Errorf("%+v", second)
		}
		get[Me](w, second.Text, "/v1/me")
		if a := w.do(w.ann, "DELETE", "/v1/keys/"+second.ID, ""); a.status != 204 || a.body != "" {
			t.Errorf("%+v", a)
		}
		w.refused(w.do(second.Text, "GET", "/v1/me", ""), 401)
		list := get[List[Key]](w, w.ann, "/v1/keys").Items
		if len(list) != 3 || list[0].ID != second.ID || list[0].RevokedAt == nil {
			t.Errorf("%+v", list)
		}
		get[Me](w, w.bob, "/v1/me")
		decode[Tenant](w, w.do(w.op, "PATCH", "/v1/tenants/bob", `{"disabled":true}`), 200)
		w.refused(w.do(w.bob, "GET", "/v1/me", ""), 401)
		decode[Tenant](w, w.do(w.op, "PATCH", "/v1/tenants/bob", `{"disabled":false}`), 200)
		get[Me](w, w.bob, "/v1/me")
	})
}

func Test_a_key_makes_no_key_that_may_do_more_and_revokes_none(t *testing.T) {
	w := newWorld(t, openSQLite(t), nil)
	w.refused(w.do(w.annRO, "POST", "/v1/keys", `{"scopes":["read"]}`), 403)
	w.refused(w.do(w.ann, "POST", "/v1/keys", `{"scopes":["operator"]}`), 403)
	w.refused(w.do(w.ann, "POST", "/v1/keys", `{"scopes":["root"]}`), 422)
	strong := decode[NewKeyView](w, w.do(w.op, "POST", "/v1/tenants/ann/keys", `{"scopes":["operator"]}`), 201)
	w.refused(w.do(w.ann, "DELETE", "/v1/keys/"+strong.ID, ""), 403)
	get[List[Tenant]](w, strong.Text, "/v1/tenants")
	missing := w.do(w.ann, "DELETE", "/v1/keys/missing", "")
	for name, key := range map[string]string{"the operator": w.op, "bob": w.bob, "bob's operator": w.key("bob", ledger.ScopeOperator)} {
		id, _, _ := parseKey(key)
		if a := w.do(w.ann, "DELETE", "/v1/keys/"+id, ""); same(a) != same(missing) {
			t.Errorf("a key of %s is told from a missing one: %+v", name, a)
		}
	}
	annID, _, _ := parseKey(w.ann)
	w.refused(w.do(w.op, "DELETE", "/v1/keys/"+annID, ""), 404)           // the operator's own are meant there
	w.refused(w.do(w.op, "POST", "/v1/keys", `{"scopes":["read"]}`), 422) // of no tenant: its rows would be everybody's
	if k := decode[NewKeyView](w, w.do(w.op, "POST", "/v1/keys", `{}`), 201); strings.Join(k.Scopes, " ") != "operator" || k.Tenant != nil {
		t.Errorf("%+v", k)
	}
	for range maxKeys - 3 {
		decode[NewKeyView](w, w.do(w.ann, "POST", "/v1/keys", `{}`), 201)
	}
	w.refused(w.do(w.ann, "POST", "/v1/keys", `{}`), 409)
	if strings.Contains(w.log.String(), strong.Text[16:]) {
		t.Error("the log has a secret")
	}
}
