//go:build unix

package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Replica makes a standby that follows the server and can be promoted. If it is
// synchronous, commits wait from now on until it has them.
func (s *Server) Replica(t testing.TB, synchronous bool) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "tiptoe-pg-")
	if err != nil {
		t.Fatal(err)
	}
	r := &Server{dir: dir, bin: s.bin, settings: s.settings, cred: s.cred}
	t.Cleanup(r.discard)
	if r.cred != nil {
		if err := os.Chown(dir, int(r.cred.Uid), int(r.cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	backup := r.command(filepath.Join(s.bin, "pg_basebackup"), "-D", "data", "-h", s.dir, "-U", "tiptoe", "-c", "fast", "-X", "stream", "-R", "--no-sync")
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	r.Start(t)
	if synchronous { // after the copy, which must not wait for a replica of its own
		s.Set(t, "synchronous_standby_names", "*")
		for end := time.Now().Add(readyWithin); !s.Replicates("sync"); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the replica does not follow")
			}
		}
	}
	return r
}

// Replicates reports whether a replica follows the server now; how: sync or async.
func (s *Server) Replicates(how string) bool {
	return s.run("SELECT 1 / count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '"+how+"'") == nil
}

// Promote makes a primary of a replica.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if err := s.run("SELECT pg_promote()"); err != nil {
		t.Fatal(err)
	}
}

// Set changes a setting of a server that is up.
func (s *Server) Set(t testing.TB, name, value string) {
	t.Helper()
	for _, q := range []string{fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", name, value), "SELECT pg_reload_conf()"} {
		if err := s.run(q); err != nil {
			t.Fatal(err)
		}
	}
}

// Either is the URL of a database on whichever of two servers is the primary.
func (s *Server) Either(other *Server, url string) string {
	return strings.Replace(url, "host="+s.dir, "host="+s.dir+","+other.dir, 1)
}
