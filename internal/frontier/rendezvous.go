package frontier

import (
	"strings"

	"github.com/zeebo/xxh3"

	"tiptoe/internal/weburl"
)

// Rendezvous picks the node with the highest hash of (key, node). When a node
// comes or goes, only the keys that it wins or held move.
func Rendezvous(key string, nodes []string) int {
	best, at := uint64(0), -1
	for i, n := range nodes {
		if h := xxh3.HashStringSeed(key, xxh3.HashString(n)); at < 0 || h > best {
			best, at = h, i
		}
	}
	return at
}

// shardOf places a group by its registrable domain, so that a domain's hosts
// share a shard.
func (s *Scheduler) shardOf(group string) *shard {
	if len(s.shards) == 1 {
		return s.shards[0]
	}
	return s.shards[Rendezvous(DomainOfGroup(group), s.names)]
}

// DomainOfGroup is the registrable domain of a group that is a host key, and
// of any other group its name.
func DomainOfGroup(group string) string {
	host := group
	if i := strings.LastIndexByte(host, ':'); i > 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return weburl.DomainOf(host)
}
