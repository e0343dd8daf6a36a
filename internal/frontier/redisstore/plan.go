package redisstore

import (
	"cmp"
	"slices"
	"strconv"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// What one script call takes at most, so that Redis serves others in between:
// 200 additions are about 0.6 ms of its time.
const (
	maxOffers = 200
	maxDeeds  = 400
	maxBytes  = 256 << 10
)

// plan is a batch, sorted by where its parts go.
type plan struct {
	offers []offer
	marks  []mark
	deeds  []deed
	span   int64 // numbers reserved for IDs
}

// offer is a URL that may be new.
type offer struct {
	at     int // in Batch.Add
	crawl  frontier.CrawlID
	group  string
	fp     weburl.Fingerprint
	value  string // priority, then the encoded entry
	home   int    // shard that decides whether the URL is new
	shard  int    // shard of its queue
	beside int    // shard of the page that named it; -1 if nobody says
	again  bool
	seen   bool
	number int64 // given by the shard's clock; 0 if not new
}

// mark is a URL to remember in one shard; confirm ends a claim.
type mark struct {
	crawl   frontier.CrawlID
	fp      weburl.Fingerprint
	shard   int
	confirm bool
}

// deed is an update, acknowledgement or note.
type deed struct {
	shard int
	group string
	kind  deedKind
	crawl frontier.CrawlID
	name  string // place, or the note's name
	value string
	there bool // of a note: it has a value
}

type deedKind uint8

const (
	updateDeed deedKind = iota
	ackDeed
	noteDeed
)

type urlKey struct {
	crawl frontier.CrawlID
	fp    weburl.Fingerprint
}

// prepare sorts a batch, dropping what this process knows to be seen.
func (s *Store) prepare(b *frontier.Batch) (*plan, error) {
	p := &plan{span: int64(len(b.Add)) + 1}
	first := make(map[urlKey]int, len(b.Add))
	for i := range b.Add {
		e := &b.Add[i]
		salt, open := s.cache.salt(e.Crawl)
		if !open {
			return nil, notOpen(e.Crawl)
		}
		u := weburl.FromCanonical(e.URL)
		fp := u.Fingerprint()
		if s.cache.look(salt, fp, 1, false) > 0 && !e.Again && !s.doubts.about(urlKey{e.Crawl, fp}) {
			continue
		}
		if at, twice := first[urlKey{e.Crawl, fp}]; twice {
			p.offers[at].again = p.offers[at].again || e.Again
			if p.offers[at].beside >= 0 && b.Add[p.offers[at].at].Beside != e.Beside {
				p.offers[at].beside = -1 // pages of two groups wait for it
			}
			continue
		}
		first[urlKey{e.Crawl, fp}] = len(p.offers)
		shard, beside := s.shardOf(e.Group), -1
		if e.Beside == e.Group {
			beside = shard
		} else if e.Beside != "" {
			beside = s.shardOf(e.Beside)
		}
		p.offers = append(p.offers, offer{
			at: i, crawl: e.Crawl, group: e.Group, fp: fp, value: string(frontier.AppendEntry([]byte{e.Prio}, e)),
			shard: shard, beside: beside, home: s.homeOf(u.HostKey(), e.Group, shard), again: e.Again,
		})
	}
	for _, m := range b.Mark {
		salt, open := s.cache.salt(m.Crawl)
		if !open {
			return nil, notOpen(m.Crawl)
		}
		switch {
		case s.cache.look(salt, m.FP, 1, false) > 0:
		case m.Host != "":
			p.marks = append(p.marks, mark{crawl: m.Crawl, fp: m.FP, shard: s.shardOf(m.Host)})
		default:
			for shard := range s.tags {
				p.marks = append(p.marks, mark{crawl: m.Crawl, fp: m.FP, shard: shard})
			}
		}
	}
	s.prepareDeeds(p, b)
	return p, nil
}

func (s *Store) prepareDeeds(p *plan, b *frontier.Batch) {
	for i := range b.Update {
		e := &b.Update[i]
		p.deeds = append(p.deeds, deed{shard: s.shardOf(e.Group), group: e.Group, kind: updateDeed, crawl: e.Crawl,
			name: posText(e.Pos()), value: string(frontier.AppendEntry(nil, e))})
	}
	for i := range b.Ack {
		r := &b.Ack[i]
		p.deeds = append(p.deeds, deed{shard: s.shardOf(r.Group), group: r.Group, kind: ackDeed, crawl: r.Crawl, name: posText(r.Pos)})
	}
	for i := range b.Notes {
		n := &b.Notes[i]
		p.deeds = append(p.deeds, deed{shard: s.shardOf(n.Group), group: n.Group, kind: noteDeed, name: n.Name,
			value: string(n.Value), there: n.Value != nil})
	}
	// Stable: of two values of a note the later one stays.
	slices.SortStableFunc(p.deeds, func(a, b deed) int {
		return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.group, b.group))
	})
}

func notOpen(crawl frontier.CrawlID) error { return &frontier.NotOpenError{Crawl: crawl} }

// work is what one call of the commit script is to do.
type work struct {
	shard  int
	beside bool // offers may come with the acknowledgements of their shard
	offers []*offer
	marks  []mark
	deeds  []deed
}

// cut cuts a list, ordered by shard, into pieces that one call may take.
func cut[T any](list []T, most int, shard func(*T) int, size func(*T) int) [][]T {
	var pieces [][]T
	for len(list) > 0 {
		n, bytes := 0, 0
		for n < len(list) && n < most && (n == 0 || bytes < maxBytes && shard(&list[n]) == shard(&list[0])) {
			bytes += size(&list[n])
			n++
		}
		pieces = append(pieces, list[:n])
		list = list[n:]
	}
	return pieces
}

// adds lists the calls that queue what may be new. What is beside the
// acknowledgement of the only page that waits for it is a call of its own, which
// may travel; so is, if all that comes last goes to one shard, what that has.
func (p *plan) adds(last int) (list []*work) {
	var offers []*offer
	travels := func(o *offer) bool { return o.home == o.shard && (o.beside == o.shard || last == o.shard) }
	for i := range p.offers {
		if !p.offers[i].seen {
			offers = append(offers, &p.offers[i])
		}
	}
	slices.SortStableFunc(offers, func(a, b *offer) int {
		return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.crawl, b.crawl), cmp.Compare(a.group, b.group))
	})
	var parts [2][]*offer
	for _, o := range offers {
		i := 0
		if travels(o) {
			i = 1
		}
		parts[i] = append(parts[i], o)
	}
	for i, part := range parts {
		for _, piece := range cut(part, maxOffers, func(o **offer) int { return (*o).shard }, func(o **offer) int { return len((*o).value) }) {
			list = append(list, &work{shard: piece[0].shard, beside: i == 1, offers: piece})
		}
	}
	return list
}

// rest lists the calls that mark, update, acknowledge and note.
func (p *plan) rest() (list []*work) {
	slices.SortStableFunc(p.marks, func(a, b mark) int { return cmp.Compare(a.shard, b.shard) })
	for _, part := range cut(p.marks, maxDeeds, func(m *mark) int { return m.shard }, func(*mark) int { return 0 }) {
		list = append(list, &work{shard: part[0].shard, marks: part})
	}
	for _, part := range cut(p.deeds, maxDeeds, func(d *deed) int { return d.shard }, func(d *deed) int { return len(d.value) }) {
		list = join(list, &work{shard: part[0].shard, deeds: part})
	}
	return list
}

// join lets a call that has only marks take deeds of its shard, too.
func join(list []*work, w *work) []*work {
	for _, other := range list {
		if other.shard == w.shard && other.deeds == nil {
			other.deeds = w.deeds
			return list
		}
	}
	return append(list, w)
}

// args writes a work down as commit.lua reads it. token finds the fence of a
// group.
func (w *work) args(clock, span int64, session string, token func(group string) string) []string {
	args := []string{strconv.FormatInt(clock, 10), strconv.FormatInt(span, 10), session, strconv.Itoa(w.shard)}
	// list begins a list with its length, which grows with each call of what
	// it returns.
	list := func() (add func()) {
		at, n := len(args), 0
		args = append(args, "0")
		return func() { n++; args[at] = strconv.Itoa(n) }
	}

	add := list()
	crawl := map[frontier.CrawlID]bool{}
	need := func(c frontier.CrawlID) {
		if !crawl[c] {
			crawl[c] = true
			add()
			args = append(args, crawlText(c))
		}
	}
	for _, o := range w.offers {
		need(o.crawl)
	}
	for i := range w.marks {
		need(w.marks[i].crawl)
	}

	queue := list()
	var entry func()
	for i, o := range w.offers {
		if i == 0 || w.offers[i-1].crawl != o.crawl || w.offers[i-1].group != o.group {
			queue()
			args = append(args, crawlText(o.crawl), o.group)
			entry = list()
		}
		entry()
		if o.again {
			args = append(args, strconv.Itoa(-1-o.at), placeOf(o.fp), memberOf(o.fp), o.value, fpText(o.fp))
		} else {
			args = append(args, strconv.Itoa(o.at), placeOf(o.fp), memberOf(o.fp), o.value)
		}
	}

	add = list()
	for i := range w.marks {
		m := &w.marks[i]
		add()
		claim := ""
		if m.confirm {
			claim = fpText(m.fp)
		}
		args = append(args, crawlText(m.crawl), placeOf(m.fp), memberOf(m.fp), claim)
	}

	group := list()
	for deeds := w.deeds; len(deeds) > 0; {
		n := 1
		for n < len(deeds) && deeds[n].group == deeds[0].group {
			n++
		}
		group()
		args = append(args, deeds[0].group, token(deeds[0].group))
		args = appendDeeds(args, deeds[:n])
		deeds = deeds[n:]
	}
	return args
}

// appendDeeds writes one group's: for each crawl updates and acknowledgements,
// then notes.
func appendDeeds(args []string, deeds []deed) []string {
	var crawls []frontier.CrawlID
	var notes []string
	parts := map[frontier.CrawlID]*[2][]string{}
	for i := range deeds {
		d := &deeds[i]
		if d.kind == noteDeed {
			there := "0"
			if d.there {
				there = "1"
			}
			notes = append(notes, d.name, there, d.value)
			continue
		}
		if parts[d.crawl] == nil {
			parts[d.crawl] = new([2][]string)
			crawls = append(crawls, d.crawl)
		}
		part := &parts[d.crawl][d.kind]
		*part = append(*part, d.name)
		if d.kind == updateDeed {
			*part = append(*part, d.value)
		}
	}
	args = append(args, strconv.Itoa(len(crawls)))
	for _, c := range crawls {
		updates, acks := parts[c][updateDeed], parts[c][ackDeed]
		args = append(args, crawlText(c), strconv.Itoa(len(updates)/2))
		args = append(args, updates...)
		args = append(args, strconv.Itoa(len(acks)))
		args = append(args, acks...)
	}
	args = append(args, strconv.Itoa(len(notes)/3))
	return append(args, notes...)
}
