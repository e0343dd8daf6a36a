package crawl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"tiptoe/internal/frontier"
)

// Picture is one process's part of a crawl as people see it. A process alone
// has the whole of it. In a fleet each worker sends its own to the supervisor,
// which adds them up, so it is small: counts, and the shownHosts that matter
// most by work and by queue. The largest of all workers are among those.
type Picture struct {
	Counts      HostCounts                `json:"n"`
	Hosts       []HostStatus              `json:"h"`
	Waits       map[string]frontier.Waits `json:"w"` // by what they wait for
	Layers      []Layer                   `json:"l"` // in the order of Engine.layers
	Uncommitted int64                     `json:"u,omitempty"`
	BytesPerSec float64                   `json:"b,omitempty"`

	Slowest    string        `json:"s,omitempty"` // the host whose queue will take longest, in words
	SlowestFor time.Duration `json:"f,omitempty"`
	Soonest    time.Time     `json:"t,omitzero"` // when the first waiting host is due
}

// shownHosts bounds each list of hosts in a picture and in a status.
const shownHosts = 16

// Picture takes one of this process's part.
func (r *Run) Picture() Picture {
	now := r.e.cfg.Now()
	snap := r.e.sched.Snapshot(now, shownHosts, r.fc)
	p := Picture{Counts: hostCounts(snap), Waits: snap.Waits, Layers: r.e.layers(snap), Uncommitted: r.e.uncommitted.Load(),
		SlowestFor: snap.LastFor, Soonest: snap.Soonest}
	if v := snap.Last; snap.LastFor > 0 {
		p.Slowest = fmt.Sprintf("%s: %d URLs, one every %s", v.Group, v.Waiting, v.Gap.Round(time.Millisecond))
	}
	named := make(map[string]bool, 2*shownHosts)
	for _, v := range slices.Concat(snap.Longest, snap.Busiest) {
		if !named[v.Group] {
			named[v.Group] = true
			p.Hosts = append(p.Hosts, hostStatus(v))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rate.sample(now)
	p.BytesPerSec = r.rate.bps
	return p
}

// Of says whose picture it is.
func (p *Picture) Of(worker string) {
	for i := range p.Hosts {
		p.Hosts[i].Worker = worker
	}
}

// Shown is a status for a server that does not run the crawl (ReadStatus). The
// seeds stay here: there may be many.
func (s Status) Shown() ([]byte, error) {
	s.Seeds = nil
	return json.Marshal(s)
}

// ReadStatus reads what another process has shown, so long ago. Its own times
// are by that machine's clock. A store that does not answer here is trouble,
// whatever was well then.
func (e *Engine) ReadStatus(shown []byte, old time.Duration) (s Status, err error) {
	if err := json.Unmarshal(shown, &s); err != nil {
		return s, fmt.Errorf("read what another server shows of a crawl: %w", err)
	}
	s.At = e.cfg.Now().Add(-old)
	names := e.layers(frontier.Snapshot{})
	if len(names) != len(s.Layers) { // another version has others
		s.Layers = nil
	}
	for i := range s.Layers {
		s.Layers[i].Name = names[i].Name
	}
	if f := e.cfg.Fleet; f != nil && f.Waiting() != "" {
		s.Trouble = f.Waiting()
		s.Binding = s.Trouble
	}
	return s, nil
}

// shownView is of an engine what people are shown of a whole fleet.
type shownView struct {
	Layers  []Layer       `json:"l"`
	Waiting []WaitingFor  `json:"w,omitempty"`
	Commit  time.Duration `json:"c,omitempty"`
}

// Shown is an engine's view for other processes of the fleet (Add).
func (v *EngineView) Shown() ([]byte, error) {
	return json.Marshal(shownView{v.Layers, v.Waiting, v.CommitEWMA})
}

// Add puts another engine's layers, and what its hosts wait for, to this view.
func (v *EngineView) Add(shown []byte) error {
	var o shownView
	if err := json.Unmarshal(shown, &o); err != nil {
		return fmt.Errorf("read what another process shows of its engine: %w", err)
	}
	addLayers(v.Layers, o.Layers)
	v.CommitEWMA = max(v.CommitEWMA, o.Commit)
	by := make(map[string]frontier.Waits)
	for _, w := range slices.Concat(v.Waiting, o.Waiting) {
		sum := by[w.Reason]
		by[w.Reason] = frontier.Waits{Hosts: sum.Hosts + w.Hosts, URLs: sum.URLs + w.URLs}
	}
	v.Waiting = waits(by)
	return nil
}

func addLayers(to, from []Layer) {
	if len(to) != len(from) { // another version may have others
		return
	}
	for i := range to {
		to[i].add(from[i])
	}
}

// add puts another worker's part to this one.
func (p *Picture) add(o *Picture) {
	p.Counts.Ready += o.Counts.Ready
	p.Counts.Running += o.Counts.Running
	p.Counts.Waiting += o.Counts.Waiting
	p.Counts.Parked += o.Counts.Parked
	p.Counts.Idle += o.Counts.Idle
	p.Hosts = append(p.Hosts, o.Hosts...)
	for reason, n := range o.Waits {
		sum := p.Waits[reason]
		p.Waits[reason] = frontier.Waits{Hosts: sum.Hosts + n.Hosts, URLs: sum.URLs + n.URLs}
	}
	addLayers(p.Layers, o.Layers)
	p.Uncommitted += o.Uncommitted
	p.BytesPerSec += o.BytesPerSec
	if o.SlowestFor > p.SlowestFor {
		p.SlowestFor, p.Slowest = o.SlowestFor, o.Slowest
	}
	if p.Soonest.IsZero() || !o.Soonest.IsZero() && o.Soonest.Before(p.Soonest) {
		p.Soonest = o.Soonest
	}
}

// add makes one gauge of two machines'. Of what has no sum, a host's requests
// and a time, it shows the fuller one.
func (l *Layer) add(o Layer) {
	if l.Name == layerBusiest || l.Name == layerCommit {
		if o.Used*l.Limit > l.Used*o.Limit {
			l.Used, l.Limit = o.Used, o.Limit
		}
		return
	}
	l.Used, l.Limit = l.Used+o.Used, l.Limit+o.Limit
}

// busiest are the hosts with most requests lately.
func (p *Picture) busiest() []HostStatus {
	return topHosts(p.Hosts, func(h HostStatus) bool { return h.Recent > 0.01 }, func(a, b HostStatus) int { return cmp.Compare(b.Recent, a.Recent) })
}

// longest are the hosts with most waiting URLs.
func (p *Picture) longest() []HostStatus {
	return topHosts(p.Hosts, func(h HostStatus) bool { return h.Queued > 0 }, func(a, b HostStatus) int { return cmp.Compare(b.Queued, a.Queued) })
}

func topHosts(all []HostStatus, fits func(HostStatus) bool, order func(a, b HostStatus) int) (list []HostStatus) {
	for _, h := range all {
		if fits(h) {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b HostStatus) int { return cmp.Or(order(a, b), cmp.Compare(a.Host, b.Host)) })
	return list[:min(len(list), shownHosts)]
}

// waits lists what hosts wait for, by name.
func waits(by map[string]frontier.Waits) (list []WaitingFor) {
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		list = append(list, WaitingFor{reason, by[reason].Hosts, by[reason].URLs})
	}
	return list
}
