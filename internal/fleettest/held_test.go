package fleettest

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tiptoe/internal/webfarm"
)

// A worker whose leases are not renewed any more, while Redis answers all its
// other questions: only its own look at the clock (Held) can stop it. Without
// that it goes on until its commits are refused, a sixth of a lease later.
func Test_a_worker_whose_leases_are_not_renewed_begins_no_request_after_their_deadline(t *testing.T) {
	t.Parallel()
	const pace = 400 * time.Millisecond
	f := newFleet(t, false, webfarm.Config{Seed: 12, Hosts: 20, Pages: 32, Links: 12, Latency: 5 * time.Millisecond})
	g := newGate(t, "renew", "lease", "grab")
	f.onLines(g.carry)
	s := f.serve("--workers", "64")
	j := f.order(s, fields{"delay_ms": pace.Milliseconds()})
	f.served(60, time.Minute)
	last := g.close()
	deadline := last.Add(leaseTTL - leaseTTL/6)
	time.Sleep(time.Until(last.Add(leaseTTL + time.Second)))
	// The rows are written before the commit that may be refused.
	late := number(f, "SELECT count(*) FROM requests WHERE started_us > $1", deadline.UnixMicro())
	inTime := number(f, "SELECT count(*) FROM requests WHERE started_us > $1 AND started_us <= $2", deadline.Add(-time.Second).UnixMicro(), deadline.UnixMicro())
	if late > 0 || inTime == 0 {
		t.Errorf("%d requests were begun in the last second before the deadline, %d after it", inTime, late)
	}
	g.open()
	f.whole(s, j.ID, pace)
}

// gate is a line to Redis on which some scripts can be made to fail.
type gate struct {
	t      *testing.T
	sha    []string
	mu     sync.Mutex
	closed bool
	passed time.Time // when the last of them went through
}

func newGate(t *testing.T, scripts ...string) *gate {
	t.Helper()
	g := &gate{t: t}
	for _, name := range scripts {
		sum := sha1.New()
		for _, part := range []string{"prelude", name} {
			text, err := os.ReadFile(filepath.Join("..", "frontier", "redisstore", "lua", part+".lua"))
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(text)
		}
		g.sha = append(g.sha, hex.EncodeToString(sum.Sum(nil)))
	}
	return g
}

// close lets no more of the scripts pass and says when the last one did.
func (g *gate) close() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.passed.IsZero() {
		g.t.Fatal("no lease was seen; this proves nothing")
	}
	return g.passed
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

// carry passes commands on, one by one.
func (g *gate) carry(server io.Writer, client io.Reader) {
	in := bufio.NewReader(client)
	for {
		args, err := command(in)
		if err != nil {
			return // the client has gone
		}
		if len(args) > 1 && slices.Contains(g.sha, args[1]) && !g.pass() {
			args = []string{"A.LINE.THAT.REFUSES.LEASES"} // Redis knows no such command, and says so in its turn
		}
		var out strings.Builder
		fmt.Fprintf(&out, "*%d\r\n", len(args))
		for _, a := range args {
			fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(a), a)
		}
		if _, err := io.WriteString(server, out.String()); err != nil {
			return
		}
	}
}

func (g *gate) pass() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.passed = time.Now()
	return true
}

// command reads one in Redis' protocol: a list of counted strings.
func command(in *bufio.Reader) ([]string, error) {
	count := func() (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := count()
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := count()
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:size])
	}
	return args, nil
}
