package ledger

import "time"

// Tenant is somebody who orders crawls. Nothing of one tenant is visible to
// another.
type Tenant struct {
	ID            string
	Name          string
	Plan          string // name of one of the operator's plans
	Weight        int    // share of the slots when tenants compete; at least 1
	Disabled      bool   // its keys are refused and its schedules rest
	WebhookSecret string // signs what is sent to its webhooks
	Created       time.Time
}

// Key is what a caller of the API shows. Only the hash of its secret is kept.
type Key struct {
	ID       string // public: part of the key itself
	Tenant   string
	Name     string
	Scopes   []string
	Hash     []byte // SHA-256 of the secret
	Created  time.Time
	LastUsed time.Time // zero if never; written now and then
	Revoked  time.Time // zero while it is good
}

// The scopes of a key. Write includes read; operator includes everything, for
// every tenant.
const (
	ScopeRead     = "read"
	ScopeWrite    = "write"
	ScopeOperator = "operator"
)

// Usage is what a tenant spent of its pages in one month.
type Usage struct {
	Tenant   string
	Month    string // 2026-11, of UTC
	Used     int64  // pages of jobs that ended
	Reserved int64  // pages set aside for jobs that have not
}

// Month names the month a time belongs to: quotas begin anew at 00:00 UTC on
// the first.
func Month(t time.Time) string { return t.UTC().Format("2006-01") }

// Action is one line of the log of what operators did.
type Action struct {
	ID     int64 // given by the ledger, ascending
	At     time.Time
	Key    string // ID of the key that did it
	Action string // tenant.create, key.revoke, config.reload, ...
	Target string
	Detail string // JSON; never a secret
	Remote string // address it came from
}
