package postgres

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tiptoe/internal/ledger/ledgertest"
	"tiptoe/internal/outcome"
	"tiptoe/internal/testenv"
)

// silent is a way to a server that can fall silent: what is under way stays
// under way, as when a machine is unplugged.
type silent struct {
	server string
	mu     sync.Mutex
	mute   chan struct{} // closed: those who came before get no answers any more
}

func (s *silent) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("unix", s.server)
		if err != nil {
			c.Close()
			continue
		}
		s.mu.Lock()
		mute := s.mute
		s.mu.Unlock()
		go func() {
			defer up.Close()
			io.Copy(up, c)
		}()
		go func() {
			defer c.Close()
			buf := make([]byte, 4096)
			for {
				n, err := up.Read(buf)
				select {
				case <-mute:
					io.Copy(io.Discard, up)
					return
				default:
				}
				if _, werr := c.Write(buf[:n]); err != nil || werr != nil {
					return
				}
			}
		}()
	}
}

func (s *silent) fall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.mute)
	s.mute = make(chan struct{})
}

func Test_a_server_that_falls_silent_is_given_up_and_asked_anew(t *testing.T) {
	url := testenv.Postgres(t)
	before, dir, _ := strings.Cut(url, "?host=")
	way := &silent{server: filepath.Join(dir, ".s.PGSQL.5432"), mute: make(chan struct{})}
	own, err := os.MkdirTemp("", "way-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(own)
	listener, err := net.Listen("unix", filepath.Join(own, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go way.serve(listener)

	l := openLedger(t, before+"?host="+own)
	l.patience = 300 * time.Millisecond
	crawl := create(t, l)
	way.fall()
	if err := l.Commit(soon(t), ledgertest.BenchBatch(rand.New(rand.NewPCG(1, 1)), crawl, 0, 5)); err != nil {
		t.Fatal(err)
	}
	counts, err := l.PageCounts(soon(t), crawl)
	if err != nil || counts[outcome.OK] != 5 {
		t.Errorf("%v, %v", counts, err)
	}
	fallen := false
	err = l.write(soon(t), func(tx pgx.Tx) error { // between two statements
		if !fallen {
			fallen = true
			way.fall()
		}
		_, err := tx.Exec(context.Background(), "SELECT 1")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
