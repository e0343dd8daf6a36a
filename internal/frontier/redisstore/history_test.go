package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"tiptoe/internal/frontier"
	"tiptoe/internal/testenv"
)

// A history of lease calls is checked for linearizability, group by group:
// there is an order of all calls, in which each takes effect at one instant
// between its beginning and its end, that a single register of "who holds it,
// under which token" could have produced.

type deedOf string

const (
	acquired deedOf = "acquired" // Acquire returned the group
	maybe    deedOf = "maybe"    // Acquire failed: it may have been leased
	released deedOf = "released"
	unsure   deedOf = "unsure"    // Release failed: it may have been released
	renewed  deedOf = "renewed"   // Renew: a group that the worker does not know of is given back
	failed   deedOf = "failed"    // Renew failed: such a group may have been given back
	written  deedOf = "committed" // a note was taken
	fenced   deedOf = "fenced"    // a note was refused
)

type leaseOp struct {
	what   deedOf
	group  string
	worker string
	token  uint64
	known  bool // of renewed: the worker knows that it holds the group
}

// register is the state of one group. A token of 0 was never told to anybody.
type register struct {
	holder string
	token  uint64
	last   uint64
}

// registerModel allows a lease to end by itself at any time if expiry is set:
// then exclusion shows in who may write.
func registerModel(expiry bool) porcupine.Model {
	step := func(r register, op leaseOp) []register {
		ours := r.holder == op.worker && r.token == op.token
		free := register{last: r.last}
		switch op.what {
		case acquired:
			if (r.holder == "" || expiry) && op.token > r.last {
				return []register{{op.worker, op.token, op.token}}
			}
			return nil
		case maybe:
			if r.holder == "" || expiry {
				return []register{r, {op.worker, 0, r.last}}
			}
			return []register{r}
		case released:
			if ours {
				return []register{free}
			}
			return []register{r}
		case unsure:
			if ours {
				return []register{r, free}
			}
			return []register{r}
		case renewed:
			if r.holder == op.worker && !op.known {
				return []register{free}
			}
			return []register{r}
		case failed:
			if r.holder == op.worker && !op.known {
				return []register{r, free}
			}
			return []register{r}
		case written:
			if ours {
				return []register{r}
			}
			return nil
		case fenced:
			if !ours {
				return []register{r}
			}
			if expiry {
				return []register{free}
			}
			return nil
		}
		panic(op.what)
	}
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{register{}} },
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			by := map[string][]porcupine.Operation{}
			for _, op := range history {
				g := op.Input.(leaseOp).group
				by[g] = append(by[g], op)
			}
			var parts [][]porcupine.Operation
			for _, p := range by {
				parts = append(parts, p)
			}
			return parts
		},
		Step: func(state, input, _ any) []any {
			var next []any
			for _, r := range step(state.(register), input.(leaseOp)) {
				next = append(next, r)
			}
			return next
		},
	}
	return model.ToModel()
}

type history struct {
	mu    sync.Mutex
	start time.Time
	ops   []porcupine.Operation
}

func (h *history) now() int64 { return time.Since(h.start).Nanoseconds() }

func (h *history) note(client int, call int64, op leaseOp) {
	end := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: op, Call: call, Return: end})
}

// oldLease is a lease with the session it was given to.
type oldLease struct {
	frontier.Lease
	session string
}

// writeAs commits a note under a lease, whatever the store believes by now.
func (s *Store) writeAs(l oldLease) (refused bool, err error) {
	w := work{shard: s.shardOf(l.Group), deeds: []deed{{group: l.Group, kind: noteDeed, name: "n", value: "v", there: true}}}
	replies, err := s.run(ctx, call{w.shard, scriptCommit, w.args(0, 1, l.session, func(string) string { return fmt.Sprint(l.Token) })})
	if err != nil {
		return false, err
	}
	parts, err := replies[0].ToArray()
	if err != nil {
		return false, err
	}
	groups, err := parts[2].AsStrSlice()
	return len(groups) > 0, err
}

// live runs one worker: it acquires, writes, renews and releases at random.
func (h *history) live(t *testing.T, s *Store, client int, groups []string, ttl time.Duration, steps int) {
	worker := fmt.Sprint("w", client)
	rnd := rand.New(rand.NewPCG(11, uint64(client)))
	held := map[string]frontier.Lease{}
	var past []oldLease // that this worker once had
	for range steps {
		call := h.now()
		switch what := rnd.IntN(10); {
		case what < 3:
			leases, err := s.Acquire(ctx, worker, ttl, 1+rnd.IntN(2), nil)
			for _, l := range leases {
				h.note(client, call, leaseOp{what: acquired, group: l.Group, worker: worker, token: l.Token})
				held[l.Group] = l
				past = append(past, oldLease{l, s.current(s.shardOf(l.Group)).name})
			}
			if err != nil {
				for _, g := range groups {
					if _, ours := held[g]; !ours {
						h.note(client, call, leaseOp{what: maybe, group: g, worker: worker})
					}
				}
			}
		case what < 7 && len(past) > 0:
			// Also with leases of before, as a thread would that was frozen
			// between the look at its token and the call.
			l := past[max(len(past)-1-rnd.IntN(3), 0)]
			op := leaseOp{what: written, group: l.Group, worker: worker, token: l.Token}
			refused, err := s.writeAs(l)
			if refused {
				op.what = fenced
			}
			if err == nil {
				h.note(client, call, op)
			}
		case what < 8:
			lost, _, err := s.Renew(ctx, worker, ttl)
			for _, g := range lost {
				delete(held, g)
			}
			what := renewed
			if err != nil || ttl < time.Hour { // its session may be gone, and what it did not know with it
				what = failed
			}
			for _, g := range groups {
				_, ours := held[g]
				h.note(client, call, leaseOp{what: what, group: g, worker: worker, known: ours})
			}
		case len(held) > 0:
			for g, l := range held {
				delete(held, g)
				op := leaseOp{what: released, group: g, worker: worker, token: l.Token}
				if err := s.Release(ctx, []frontier.Lease{l}); err != nil {
					op.what = unsure
				}
				h.note(client, call, op)
				break
			}
		}
	}
}

func Test_lease_histories_are_linearizable(t *testing.T) {
	r := testenv.StartRedis(t, "--appendfsync", "everysec")
	for _, c := range []struct {
		name   string
		ttl    time.Duration
		losses int
		delays int
	}{
		{"calls overlap", time.Hour, 0, 2},
		{"questions and answers are lost", time.Hour, 6, 2},
		{"leases expire under their holders", 25 * time.Millisecond, 0, 4},
		{"leases expire and answers are lost", 25 * time.Millisecond, 8, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			prefix := newPrefix()
			var groups []string
			first := openTest(t, Options{URL: r.URL(), Prefix: prefix})
			if err := first.OpenCrawl(ctx, 1); err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				e := frontier.Entry{Crawl: 1, Group: fmt.Sprintf("h%d.example", i), URL: fmt.Sprintf("https://h%d.example/", i)}
				groups = append(groups, e.Group)
				if _, err := first.Commit(ctx, &frontier.Batch{Add: []frontier.Entry{e}}); err != nil {
					t.Fatal(err)
				}
			}
			h := &history{start: time.Now()}
			var end sync.WaitGroup
			for client := range 4 {
				s := openTest(t, Options{URL: r.URL(), Prefix: prefix})
				s.fault = unsteady(uint64(client), c.losses, c.delays)
				end.Go(func() { h.live(t, s, client, groups, c.ttl, 80) })
			}
			end.Wait()
			counts := map[deedOf]int{}
			for _, op := range h.ops {
				counts[op.Input.(leaseOp).what]++
			}
			t.Log(counts)
			if counts[acquired] < 5 || counts[written] == 0 || counts[fenced] == 0 {
				t.Errorf("the history shows too little: %v", counts)
			}
			switch porcupine.CheckOperationsTimeout(registerModel(c.ttl < time.Hour), h.ops, 20*time.Second) {
			case porcupine.Illegal:
				slices.SortFunc(h.ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
				for _, op := range h.ops {
					t.Logf("%8d %8d %+v", op.Call/1000, op.Return/1000, op.Input)
				}
				t.Error("the history is not linearizable")
			case porcupine.Unknown:
				t.Error("the history could not be checked in time")
			}
		})
	}
}

// unsteady delays calls up to so many milliseconds and loses one in n.
func unsteady(seed uint64, n, most int) func() error {
	lose := func() error { return nil }
	if n > 0 {
		lose = losses(seed, n)
	}
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 77))
	return func() error {
		mu.Lock()
		d := time.Duration(rnd.IntN(most*1000)) * time.Microsecond
		mu.Unlock()
		time.Sleep(d)
		return lose()
	}
}

func Test_the_check_of_histories_finds_two_holders(t *testing.T) {
	op := func(call, end int64, o leaseOp) porcupine.Operation {
		o.group = "g"
		return porcupine.Operation{Input: o, Call: call, Return: end}
	}
	first := op(0, 1, leaseOp{what: acquired, worker: "a", token: 1})
	for name, bad := range map[string][]porcupine.Operation{
		"two hold it":                 {first, op(2, 3, leaseOp{what: acquired, worker: "b", token: 2})},
		"a token repeats":             {first, op(2, 3, leaseOp{what: released, worker: "a", token: 1}), op(4, 5, leaseOp{what: acquired, worker: "b", token: 1})},
		"the holder is refused":       {first, op(2, 3, leaseOp{what: fenced, worker: "a", token: 1})},
		"a stranger writes":           {first, op(2, 3, leaseOp{what: written, worker: "b", token: 1})},
		"an old token writes":         {first, op(2, 3, leaseOp{what: released, worker: "a", token: 1}), op(4, 5, leaseOp{what: written, worker: "a", token: 1})},
		"a lost lease survives Renew": {op(0, 1, leaseOp{what: maybe, worker: "a"}), op(2, 3, leaseOp{what: renewed, worker: "a"}), op(4, 5, leaseOp{what: written, worker: "a", token: 0})},
	} {
		if porcupine.CheckOperations(registerModel(false), bad) {
			t.Errorf("%s: nobody noticed", name)
		}
	}
	late := []porcupine.Operation{first, op(2, 3, leaseOp{what: acquired, worker: "b", token: 2}), op(4, 5, leaseOp{what: written, worker: "a", token: 1})}
	if porcupine.CheckOperations(registerModel(true), late) {
		t.Error("a late holder wrote, and nobody noticed")
	}
}
