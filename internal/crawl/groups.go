package crawl

import (
	"sync"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// groupLookups is how many hosts of one page are looked for at once when
// grouping must ask a name server: a page may name hundreds.
const groupLookups = 16

// groupNow is a host's pace group if nobody needs to be asked for it; empty
// leaves it to groupAll.
func (e *Engine) groupNow(hostKey string) string {
	if e.asks {
		return ""
	}
	return hostKey
}

// groupAll fills in the pace groups of entries that are about to be queued.
// It may wait for name servers, so it is called without locks.
func (e *Engine) groupAll(entries []frontier.Entry) {
	if !e.asks {
		return
	}
	groups := make(map[string]string, 1)
	for i := range entries {
		if entries[i].Group == "" {
			groups[weburl.FromCanonical(entries[i].URL).HostKey()] = ""
		}
	}
	e.findGroups(groups)
	for i := range entries {
		if entries[i].Group == "" {
			entries[i].Group = groups[weburl.FromCanonical(entries[i].URL).HostKey()]
		}
	}
}

func (e *Engine) findGroups(groups map[string]string) {
	if len(groups) == 1 {
		for host := range groups {
			groups[host] = e.cfg.GroupOf(host)
		}
		return
	}
	hosts := make(chan string, len(groups))
	for host := range groups {
		hosts <- host
	}
	close(hosts)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range min(len(groups), groupLookups) {
		wg.Go(func() {
			for host := range hosts {
				group := e.cfg.GroupOf(host)
				mu.Lock()
				groups[host] = group
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
