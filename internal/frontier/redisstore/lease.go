package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"tiptoe/internal/frontier"
)

// session is this process's standing in one shard: all of its leases there
// live and die with it. A session that expired goes on if nobody has reaped it
// by the time it is renewed. One that was reaped is never used again; the next
// has another name, so what was said under the old one stays fenced.
type session struct {
	name     string // worker/process/number; empty before the first lease
	number   int
	tried    bool // a lease was asked for: Redis may know it
	begun    bool // Redis has said that it knows it
	leases   map[string]uint64
	heard    int64     // version up to which we know who added to our groups
	deadline time.Time // when its leases must be taken for expired here
}

const (
	reapMost      = 200  // groups of dead sessions freed by one call
	candidatePage = 1000 // free groups looked at in one call, at most
	candidateMost = 8    // so many times that in one shard for one Acquire
	changedPage   = 1000
	leaseMost     = 200 // groups leased or released in one call
)

// use notes the worker's name; one process is one worker.
func (s *Store) use(worker string) error {
	if s.opts.Exclusive {
		return errors.New("an exclusive store has no leases: it owns everything")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.worker == "" {
		s.worker = worker
	}
	if s.worker != worker {
		return fmt.Errorf("this process leases as worker %s, not as %s", s.worker, worker)
	}
	return nil
}

// fence returns what commits to a shard are checked against.
func (s *Store) fence(shard int) (name string, token func(group string) string) {
	if s.opts.Exclusive {
		return "", func(string) string { return "*" }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := &s.sessions[shard]
	return ses.name, func(group string) string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ses.name != name {
			return "0"
		}
		return strconv.FormatUint(ses.leases[group], 10)
	}
}

// drop forgets groups that Redis says are not ours; Renew will report them.
func (s *Store) drop(groups []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range groups {
		ses := &s.sessions[s.shardOf(g)]
		if _, held := ses.leases[g]; held {
			delete(ses.leases, g)
			s.lost = append(s.lost, g)
		}
	}
}

// end forgets a session that was reaped, with all of its leases.
func (s *Store) end(shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := &s.sessions[shard]
	s.lost = slices.AppendSeq(s.lost, maps.Keys(ses.leases))
	*ses = session{number: ses.number + 1}
}

// current returns a copy of a session, which it names if it has no name yet.
func (s *Store) current(shard int) session {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := &s.sessions[shard]
	if ses.name == "" {
		ses.name = fmt.Sprintf("%s/%s/%d", s.worker, s.self, ses.number)
		ses.leases = make(map[string]uint64)
	}
	return *ses
}

// extend moves a session's deadline after a call that was sent at a time.
func (s *Store) extend(shard int, sent time.Time, ttl time.Duration) {
	margin := cmp.Or(s.opts.Margin, ttl/6)
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := &s.sessions[shard]
	ses.begun = true
	if d := sent.Add(ttl - margin); d.After(ses.deadline) {
		ses.deadline = d
	}
}

// Deadline implements frontier.Leases.
func (s *Store) Deadline(group string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := &s.sessions[s.shardOf(group)]
	if _, held := ses.leases[group]; !held {
		return time.Time{}
	}
	return ses.deadline
}

// Heartbeat implements frontier.Leases. The list is in the first shard.
func (s *Store) Heartbeat(ctx context.Context, w frontier.Worker, ttl time.Duration) (roll frontier.Roll, err error) {
	text, err := json.Marshal(w)
	if err != nil {
		return roll, err
	}
	r, err := s.one(ctx, boardShard, scriptHeartbeat, w.ID, string(text), millis(ttl))
	if err != nil {
		return roll, fmt.Errorf("heartbeat: %w", err)
	}
	list, err := r.AsStrSlice()
	if err != nil || len(list) < 2 {
		return roll, s.strange("heartbeat", err)
	}
	micros, err1 := strconv.ParseInt(list[0], 10, 64)
	number, err2 := strconv.Atoi(list[1])
	if err := errors.Join(err1, err2); err != nil {
		return roll, s.strange("heartbeat", err)
	}
	live := make([]frontier.Worker, len(list)-2)
	for i, one := range list[2:] {
		w, silent, err := workerOf(one)
		if err != nil {
			return roll, s.strange("heartbeat", err)
		}
		live[i] = w
		live[i].Silent = time.Duration(silent) * time.Millisecond
	}
	slices.SortFunc(live, func(a, b frontier.Worker) int { return cmp.Compare(a.ID, b.ID) })
	return frontier.Roll{Live: live, Number: number, At: time.UnixMicro(micros).UTC()}, nil
}

// Acquire implements frontier.Leases.
func (s *Store) Acquire(ctx context.Context, worker string, ttl time.Duration, max int, prefers func(string) bool) ([]frontier.Lease, error) {
	if err := s.use(worker); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.ops.Done()
	s.leasing.Lock()
	defer s.leasing.Unlock()
	chosen, err := s.choose(ctx, ttl, max, prefers)
	if err != nil {
		return nil, fmt.Errorf("look for free hosts: %w", err)
	}
	leases, expired, err := s.take(ctx, ttl, chosen)
	if err == nil && expired != nil { // once more, under the names of new sessions
		var more []frontier.Lease
		more, _, err = s.take(ctx, ttl, expired)
		leases = append(leases, more...)
	}
	if err != nil {
		err = fmt.Errorf("lease hosts: %w", err)
	}
	return leases, err
}

// choose picks, of all shards, free groups that we prefer or that nobody
// wanted for long, those that are free longest first.
func (s *Store) choose(ctx context.Context, ttl time.Duration, most int, prefers func(string) bool) ([][]string, error) {
	type candidate struct {
		group string
		age   int64
		shard int
	}
	var found []candidate
	open := make([]int, len(s.tags))
	for i := range open {
		open[i] = i
	}
	offset := make([]int, len(s.tags))
	limit := min(max(4*most, 64), candidatePage)
	for len(open) > 0 && len(found) < most {
		calls := make([]call, len(open))
		for i, shard := range open {
			calls[i] = call{shard, scriptCandidates, []string{strconv.Itoa(offset[shard]), strconv.Itoa(limit), strconv.Itoa(reapMost), millis(ttl)}}
		}
		replies, err := s.run(ctx, calls...)
		if err != nil {
			return nil, err
		}
		var next []int
		for i, r := range replies {
			parts, err := r.ToArray()
			if err != nil || len(parts) != 2 {
				return nil, s.strange("candidates", err)
			}
			reaping, err1 := parts[0].AsInt64()
			list, err2 := parts[1].ToArray()
			if err1 != nil || err2 != nil {
				return nil, s.strange("candidates", errors.Join(err1, err2))
			}
			shard := open[i]
			if reaping == 1 { // a dead worker's groups are being freed: they come first
				next = append(next, shard)
				continue
			}
			for j := 0; j+1 < len(list); j += 2 {
				group, err1 := list[j].ToString()
				age, err2 := list[j+1].AsInt64()
				if err1 != nil || err2 != nil {
					return nil, s.strange("candidates", err2)
				}
				if prefers == nil || time.Duration(age)*time.Millisecond >= s.opts.Patience || prefers(group) {
					found = append(found, candidate{group, age, shard})
				}
			}
			offset[shard] += limit
			if len(list) == 2*limit && offset[shard] < candidateMost*candidatePage {
				next = append(next, shard)
			}
		}
		open = next
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.age, a.age) })
	chosen := make([][]string, len(s.tags))
	for _, c := range found[:min(len(found), most)] {
		chosen[c.shard] = append(chosen[c.shard], c.group)
	}
	return chosen, nil
}

// take leases groups. One that somebody else took meanwhile is left out; those
// of shards in which our session was reaped are returned.
func (s *Store) take(ctx context.Context, ttl time.Duration, chosen [][]string) (leases []frontier.Lease, expired [][]string, err error) {
	var calls []call
	sent := time.Now()
	for shard, groups := range chosen {
		for part := range slices.Chunk(groups, leaseMost) {
			ses := s.current(shard)
			s.mu.Lock()
			s.sessions[shard].tried = true
			s.mu.Unlock()
			begun := "0"
			if ses.begun {
				begun = "1"
			}
			args := append([]string{ses.name, begun, millis(ttl), strconv.Itoa(len(part))}, part...)
			calls = append(calls, call{shard, scriptLease, args})
		}
	}
	replies, err := s.run(ctx, calls...)
	for i, r := range replies {
		shard := calls[i].shard
		if rueidis.IsRedisNil(r.Error()) { // what it held is lost
			if expired == nil {
				expired = make([][]string, len(s.tags))
			}
			expired[shard] = chosen[shard]
			if ses := s.current(shard); ses.name == calls[i].args[0] {
				s.end(shard)
			}
			continue
		}
		if r.Error() != nil {
			continue // err has it; Renew finds what was leased all the same
		}
		got, perr := s.parseLeases(r)
		if perr != nil {
			return leases, nil, perr
		}
		s.extend(shard, sent, ttl)
		s.mu.Lock()
		for _, l := range got {
			s.sessions[shard].leases[l.Group] = l.Token
		}
		s.mu.Unlock()
		leases = append(leases, got...)
	}
	return leases, expired, err
}

// Renew implements frontier.Leases.
func (s *Store) Renew(ctx context.Context, worker string, ttl time.Duration) (lost []string, changed []frontier.Lease, err error) {
	if err := s.use(worker); err != nil {
		return nil, nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, nil, err
	}
	defer s.ops.Done()
	s.leasing.Lock()
	defer s.leasing.Unlock()
	more := true
	for more && err == nil {
		var part []frontier.Lease
		part, more, err = s.renewOnce(ctx, ttl)
		changed = append(changed, part...)
	}
	s.mu.Lock()
	for _, g := range s.lost {
		if _, again := s.sessions[s.shardOf(g)].leases[g]; !again {
			lost = append(lost, g)
		}
	}
	s.lost = nil
	s.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("renew leases: %w", err)
	}
	return lost, changed, err
}

func (s *Store) renewOnce(ctx context.Context, ttl time.Duration) (changed []frontier.Lease, more bool, err error) {
	var calls []call
	sent := time.Now()
	for shard := range s.tags {
		if ses := s.current(shard); ses.tried {
			calls = append(calls, call{shard, scriptRenew, []string{
				ses.name, millis(ttl), strconv.FormatInt(ses.heard, 10), strconv.Itoa(changedPage), strconv.Itoa(reapMost)}})
		}
	}
	replies, err := s.run(ctx, calls...)
	for i, r := range replies {
		shard := calls[i].shard
		if rueidis.IsRedisNil(r.Error()) {
			s.end(shard)
			continue
		}
		if r.Error() != nil {
			continue // err has it
		}
		parts, perr := r.ToArray()
		if perr != nil || len(parts) != 4 {
			return changed, false, s.strange("renew", perr)
		}
		held, err1 := parts[0].AsInt64()
		heard, err2 := parts[1].AsInt64()
		rest, err3 := parts[2].AsInt64()
		got, err4 := s.parseLeaseList(parts[3])
		if perr := errors.Join(err1, err2, err3, err4); perr != nil {
			return changed, false, perr
		}
		s.mu.Lock()
		s.sessions[shard].heard = heard
		known := len(s.sessions[shard].leases)
		s.mu.Unlock()
		more = more || rest == 1
		changed = append(changed, got...)
		if int(held) != known {
			if perr := s.reconcile(ctx, shard); perr != nil {
				err = cmp.Or(err, perr)
				continue // what it holds is not known, so nothing is extended
			}
		}
		s.extend(shard, sent, ttl)
	}
	return changed, more, err
}

// reconcile gives groups back that Redis leased to us and we never heard of: a
// reply was lost. What we believe to hold and do not, is lost.
func (s *Store) reconcile(ctx context.Context, shard int) error {
	ses := s.current(shard)
	replies, err := s.run(ctx, call{shard, scriptHeld, []string{ses.name}})
	if err != nil {
		return err
	}
	list, err := replies[0].ToArray()
	if err != nil {
		return s.strange("held", err)
	}
	held := make(map[string]bool)
	var unknown []frontier.Lease
	var gone []string
	s.mu.Lock()
	for i := 0; i+1 < len(list); i += 2 {
		group, err1 := list[i].ToString()
		token, err2 := list[i+1].AsInt64()
		if err1 != nil || err2 != nil {
			s.mu.Unlock()
			return s.strange("held", err2)
		}
		if ses.leases[group] == uint64(token) {
			held[group] = true
		} else {
			unknown = append(unknown, frontier.Lease{Group: group, Token: uint64(token)})
		}
	}
	for group := range ses.leases {
		if !held[group] {
			gone = append(gone, group)
		}
	}
	s.mu.Unlock()
	s.drop(gone)
	return s.release(ctx, unknown)
}

// Release implements frontier.Leases. From its beginning on the groups are not
// ours, whatever comes of it.
func (s *Store) Release(ctx context.Context, leases []frontier.Lease) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.ops.Done()
	s.leasing.Lock()
	defer s.leasing.Unlock()
	s.mu.Lock()
	for _, l := range leases {
		ses := &s.sessions[s.shardOf(l.Group)]
		if ses.leases[l.Group] == l.Token {
			delete(ses.leases, l.Group)
		}
	}
	s.mu.Unlock()
	if err := s.release(ctx, leases); err != nil {
		return fmt.Errorf("give hosts back: %w", err)
	}
	return nil
}

func (s *Store) release(ctx context.Context, leases []frontier.Lease) error {
	byShard := make([][]frontier.Lease, len(s.tags))
	for _, l := range leases {
		shard := s.shardOf(l.Group)
		byShard[shard] = append(byShard[shard], l)
	}
	var calls []call
	for shard, list := range byShard {
		for part := range slices.Chunk(list, leaseMost) {
			args := []string{s.current(shard).name, strconv.Itoa(len(part))}
			for _, l := range part {
				args = append(args, l.Group, strconv.FormatUint(l.Token, 10))
			}
			calls = append(calls, call{shard, scriptRelease, args})
		}
	}
	_, err := s.run(ctx, calls...)
	return err
}

func (s *Store) parseLeases(r rueidis.RedisResult) ([]frontier.Lease, error) {
	m, err := r.ToMessage()
	if err != nil {
		return nil, s.strange("lease", err)
	}
	return s.parseLeaseList(m)
}

// parseLeaseList reads group, token, number of queues, and for each of those
// crawl and length.
func (s *Store) parseLeaseList(m rueidis.RedisMessage) ([]frontier.Lease, error) {
	list, err := m.ToArray()
	if err != nil {
		return nil, s.strange("lease", err)
	}
	next := func() int64 {
		if len(list) == 0 {
			err = errors.New("it is too short")
			return 0
		}
		n, nerr := list[0].AsInt64()
		err = errors.Join(err, nerr)
		list = list[1:]
		return n
	}
	var leases []frontier.Lease
	for len(list) > 0 && err == nil {
		var l frontier.Lease
		l.Group, err = list[0].ToString()
		list = list[1:]
		l.Token = uint64(next())
		for range next() {
			crawl, n := next(), next()
			l.Queues = append(l.Queues, frontier.Queue{Group: l.Group, Crawl: frontier.CrawlID(crawl), Count: int(n)})
		}
		leases = append(leases, l)
	}
	if err != nil {
		return nil, s.strange("lease", err)
	}
	return leases, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
