package redisstore

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/zeebo/xxh3"

	"tiptoe/internal/frontier"
	"tiptoe/internal/weburl"
)

// A place in a queue as the first nine bytes of its member: priority, ID.
const posLen = 9

// idShift leaves the low byte of an ID to the shard; the rest is the number
// that the shard's clock gave.
const (
	idShift   = 8
	maxShards = 1 << idShift
)

// partBits of a fingerprint's upper half choose the part of a seen set; the
// lower half is the member. See PARTS in prelude.lua.
const partBits = 10

var errMember = errors.New("malformed queue member")

// shardOf places a group. The number of shards never changes, so a plain
// remainder does; rendezvous hashing is for what comes and goes.
func (s *Store) shardOf(group string) int {
	return int(xxh3.HashString(frontier.DomainOfGroup(group)) % uint64(len(s.tags)))
}

// homeOf places a URL, where it is decided whether it is new. Nearly always it
// is queued in the group of its own host, which is then the same shard.
func (s *Store) homeOf(host, group string, groupShard int) int {
	if host == group {
		return groupShard
	}
	return s.shardOf(host)
}

func (s *Store) key(shard int, kind string, rest ...string) string {
	k := s.tags[shard] + ":" + kind
	for _, r := range rest {
		k += ":" + r
	}
	return k
}

func crawlText(c frontier.CrawlID) string { return strconv.FormatInt(int64(c), 10) }

func memberOf(fp weburl.Fingerprint) string { return strconv.FormatInt(int64(fp.Lo), 10) }

// placeOf says where in a seen set a member goes; see bucket in prelude.lua.
func placeOf(fp weburl.Fingerprint) string {
	row := fp.Lo
	if int64(row) < 0 {
		row = -row
	}
	return strconv.FormatUint(fp.Hi>>(64-partBits)+row%1e9<<partBits, 10)
}

// fpText is the whole fingerprint.
func fpText(fp weburl.Fingerprint) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], fp.Hi)
	binary.BigEndian.PutUint64(b[8:], fp.Lo)
	return string(b[:])
}

func posText(p frontier.Pos) string {
	var b [posLen]byte
	b[0] = p.Prio
	binary.BigEndian.PutUint64(b[1:], p.ID)
	return string(b[:])
}

// after is the lower bound of a range of members behind a place; false if
// nothing can be there.
func after(p frontier.Pos) (string, bool) {
	if p.ID++; p.ID == 0 {
		if p.Prio++; p.Prio == 0 {
			return "", false
		}
	}
	return "[" + posText(p), true
}

// parseMember reads a queue's member into an entry of that queue.
func parseMember(member string, e *frontier.Entry) error {
	if len(member) < posLen {
		return errMember
	}
	e.Prio, e.ID = member[0], binary.BigEndian.Uint64([]byte(member[1:posLen]))
	return frontier.DecodeEntry([]byte(member[posLen:]), e)
}
