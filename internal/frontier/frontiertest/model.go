package frontiertest

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tiptoe/internal/frontier"
)

// runModel walks the store at random and compares every answer with a model
// made of Go maps. All walks use one store, each with crawls and groups of its
// own: a store with a past is the harder test.
func runModel(t *testing.T, su *suite) {
	if raceDetector { // ten times as slow, and these walks have one thread
		checks := flag.Lookup("rapid.checks")
		before := checks.Value.String()
		_ = checks.Value.Set("20")
		defer checks.Value.Set(before)
	}
	s := su.open(t)
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	walk := 0
	rapid.Check(t, func(rt *rapid.T) {
		walk++
		m := &model{
			t: rt, su: su, s: s, lastID: map[string]uint64{}, base: frontier.CrawlID(100 * walk), walk: walk,
			open: map[frontier.CrawlID]bool{}, seen: map[seenKey]bool{},
			queued: map[frontier.Ref]frontier.Entry{}, notes: map[[2]string][]byte{},
		}
		actions := map[string]func(*rapid.T){
			"":       m.checkOne,
			"commit": m.commit,
			"window": m.window,
			"seen":   m.look,
			"close":  m.closeCrawl,
			"drop":   m.dropCrawl,
		}
		if su.reopen != nil {
			actions["reopen"] = func(rt *rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "really") != 0 {
					return
				}
				s = su.reopen(t, s)
				m.s = s
				clear(m.open)
			}
		}
		rt.Repeat(actions)
		m.checkAll(rt)
		for c := range m.open {
			s.CloseCrawl(c)
		}
	})
}

type seenKey struct {
	crawl frontier.CrawlID
	url   string
}

type model struct {
	t    *rapid.T
	su   *suite
	s    frontier.Store
	base frontier.CrawlID
	walk int

	open   map[frontier.CrawlID]bool
	seen   map[seenKey]bool
	queued map[frontier.Ref]frontier.Entry
	gone   []frontier.Entry
	notes  map[[2]string][]byte
	lastID map[string]uint64
	step   int
}

func (m *model) crawl() frontier.CrawlID {
	return m.base + frontier.CrawlID(rapid.IntRange(0, 2).Draw(m.t, "crawl"))
}

func (m *model) group() string {
	return fmt.Sprintf("w%d-%s", m.walk, rapid.SampledFrom([]string{"a", "ab", "b"}).Draw(m.t, "group"))
}

func (m *model) needOpen(c frontier.CrawlID) {
	if !m.open[c] {
		if err := m.s.OpenCrawl(ctx, c); err != nil {
			m.t.Fatalf("open crawl: %v", err)
		}
		m.open[c] = true
	}
}

func (m *model) url() string {
	return fmt.Sprintf("https://w.example/%d", rapid.IntRange(0, 40).Draw(m.t, "url"))
}

// place picks an entry that is or was queued, or one that never was.
func (m *model) place() frontier.Entry {
	list := slices.Clone(m.gone)
	for _, e := range m.queued {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b frontier.Entry) int { return int(a.ID) - int(b.ID) })
	i := rapid.IntRange(0, len(list)).Draw(m.t, "place")
	if i == len(list) {
		return frontier.Entry{Crawl: m.crawl(), Group: m.group(), Prio: 1, ID: 1 << 40, URL: m.url()}
	}
	return list[i]
}

func (m *model) commit(rt *rapid.T) {
	m.t = rt
	b := &frontier.Batch{}
	var want []frontier.Entry
	fresh := map[seenKey]bool{}
	for range rapid.IntRange(0, 8).Draw(rt, "adds") {
		e := frontier.Entry{
			Crawl: m.crawl(), Group: m.group(), URL: m.url(),
			Prio:  uint8(rapid.IntRange(0, 2).Draw(rt, "prio")),
			Depth: uint16(rapid.IntRange(0, 300).Draw(rt, "depth")),
		}
		m.needOpen(e.Crawl)
		b.Add = append(b.Add, e)
		if k := (seenKey{e.Crawl, e.URL}); !m.seen[k] && !fresh[k] {
			fresh[k] = true
			want = append(want, e)
		}
	}
	for range rapid.IntRange(0, 2).Draw(rt, "marks") {
		c, url := m.crawl(), m.url()
		m.needOpen(c)
		b.Mark = append(b.Mark, frontier.Mark{Crawl: c, FP: fingerprint(url)})
		fresh[seenKey{c, url}] = true
	}
	for range rapid.IntRange(0, 3).Draw(rt, "updates") {
		e := m.place()
		e.Tries = uint8(rapid.IntRange(0, 9).Draw(rt, "tries"))
		e.NotBefore = time.Unix(int64(rapid.IntRange(1, 1e9).Draw(rt, "not before")), 0).UTC()
		b.Update = append(b.Update, e)
	}
	for range rapid.IntRange(0, 4).Draw(rt, "acks") {
		e := m.place()
		b.Ack = append(b.Ack, e.Ref())
	}
	for range rapid.IntRange(0, 2).Draw(rt, "notes") {
		n := frontier.Note{Group: m.group(), Name: rapid.SampledFrom([]string{"", "clock", "robots"}).Draw(rt, "name")}
		if rapid.Bool().Draw(rt, "keep") {
			n.Value = rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(rt, "value")
		}
		b.Notes = append(b.Notes, n)
	}

	added, err := m.s.Commit(ctx, b)
	if err != nil {
		rt.Fatalf("commit: %v", err)
	}
	if len(added) != len(want) {
		rt.Fatalf("added %v, want %v", urls(added), urls(want))
	}
	for i, e := range added {
		clock := m.su.clockOf(&e)
		if e.ID <= m.lastID[clock] {
			rt.Fatalf("ID %d after %d", e.ID, m.lastID[clock])
		}
		m.lastID[clock] = e.ID
		want[i].ID = e.ID
		if d := diff(e, want[i]); d != "" {
			rt.Fatalf("added entry differs (-want +got):\n%s", d)
		}
	}
	for k := range fresh {
		m.seen[k] = true
	}
	for _, e := range b.Update {
		if _, ok := m.queued[e.Ref()]; ok {
			m.queued[e.Ref()] = e
		}
	}
	for _, r := range b.Ack {
		if e, ok := m.queued[r]; ok {
			m.gone = append(m.gone, e)
			delete(m.queued, r)
		}
	}
	for _, e := range want {
		m.queued[e.Ref()] = e
	}
	for _, n := range b.Notes {
		m.notes[[2]string{n.Group, n.Name}] = n.Value
	}
}

// queue is what the model expects of one queue.
func (m *model) queue(crawl frontier.CrawlID, group string) []frontier.Entry {
	var list []frontier.Entry
	for _, e := range m.queued {
		if e.Crawl == crawl && e.Group == group {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b frontier.Entry) int {
		if a.Pos().Less(b.Pos()) {
			return -1
		}
		return 1
	})
	return list
}

func (m *model) window(rt *rapid.T) {
	m.t = rt
	crawl, group := m.crawl(), m.group()
	after := frontier.Pos{}
	if rapid.Bool().Draw(rt, "from a place") {
		e := m.place()
		after = e.Pos()
	}
	n := rapid.IntRange(0, 10).Draw(rt, "n")
	var want []frontier.Entry
	for _, e := range m.queue(crawl, group) {
		if after.Less(e.Pos()) && len(want) < n {
			want = append(want, e)
		}
	}
	got, err := m.s.Window(ctx, group, crawl, after, n, nil)
	if err != nil {
		rt.Fatalf("window: %v", err)
	}
	if d := diff(got, want); d != "" {
		rt.Fatalf("window differs (-want +got):\n%s", d)
	}
}

func (m *model) look(rt *rapid.T) {
	m.t = rt
	c, url := m.crawl(), m.url()
	if m.s.Seen(c, fingerprint(url)) && !m.seen[seenKey{c, url}] {
		rt.Fatalf("Seen is true for %s, which was not seen", url)
	}
}

func (m *model) closeCrawl(rt *rapid.T) {
	m.t = rt
	c := m.crawl()
	m.s.CloseCrawl(c)
	delete(m.open, c)
}

func (m *model) dropCrawl(rt *rapid.T) {
	m.t = rt
	if rapid.IntRange(0, 4).Draw(rt, "really") != 0 {
		return
	}
	c := m.crawl()
	if err := m.s.DropCrawl(ctx, c); err != nil {
		rt.Fatalf("drop: %v", err)
	}
	delete(m.open, c)
	for k := range m.seen {
		if k.crawl == c {
			delete(m.seen, k)
		}
	}
	for r, e := range m.queued {
		if r.Crawl == c {
			m.gone = append(m.gone, e)
			delete(m.queued, r)
		}
	}
}

// checkOne runs after every step and looks at one of the crawls in turn.
func (m *model) checkOne(rt *rapid.T) {
	m.step++
	m.checkCrawl(rt, m.base+frontier.CrawlID(m.step%3))
}

// checkAll runs at the end of a walk.
func (m *model) checkAll(rt *rapid.T) {
	for c := m.base; c < m.base+3; c++ {
		m.checkCrawl(rt, c)
	}
	for k, want := range m.notes {
		got, err := m.s.Note(ctx, k[0], k[1])
		if err != nil {
			rt.Fatalf("note: %v", err)
		}
		if string(got) != string(want) || (got == nil) != (want == nil) {
			rt.Fatalf("note %q is %q, want %q", k, got, want)
		}
	}
}

func (m *model) checkCrawl(rt *rapid.T, c frontier.CrawlID) {
	want := map[string]int{}
	for _, e := range m.queued {
		if e.Crawl == c {
			want[e.Group]++
		}
	}
	got, err := queues(m.s, c)
	if err != nil {
		rt.Fatalf("queues: %v", err)
	}
	if d := diff(got, want); d != "" {
		rt.Fatalf("queues of crawl %d differ (-want +got):\n%s", c, d)
	}
	for g := range want {
		got, err := m.s.Window(ctx, g, c, frontier.Pos{}, 1000, nil)
		if err != nil {
			rt.Fatalf("window: %v", err)
		}
		if d := diff(got, m.queue(c, g)); d != "" {
			rt.Fatalf("queue %s of crawl %d differs (-want +got):\n%s", g, c, d)
		}
	}
}
