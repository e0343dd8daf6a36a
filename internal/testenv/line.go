package testenv

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Line is a line to a server that can be made slow, silent or cut, whatever
// the server does. It lasts as long as the test.
type Line struct {
	listener      net.Listener
	network, addr string
	up            func(server io.Writer, client io.Reader)

	mu          sync.Mutex
	least, most time.Duration // by which answers are late
	held        chan struct{} // nil, or closed when bytes may pass again
	cut         bool
	ends        map[net.Conn]bool
	running     sync.WaitGroup
}

// NewLine leads to a server's address. up carries what clients send; nil
// carries it as it is.
func NewLine(t testing.TB, network, addr string, up func(server io.Writer, client io.Reader)) *Line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Line{listener: listener, network: network, addr: addr, up: up, ends: make(map[net.Conn]bool)}
	l.running.Go(l.accept)
	t.Cleanup(func() {
		l.listener.Close()
		l.Cut()
		l.running.Wait()
	})
	return l
}

// Addr is the near end.
func (l *Line) Addr() string { return l.listener.Addr().String() }

// Slow makes every answer late by a random time between two.
func (l *Line) Slow(least, most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.least, l.most = least, most
}

// Stall lets nothing pass, in either direction; connections stay.
func (l *Line) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(chan struct{})
	}
}

// Cut ends all connections; new ones are ended as they come.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.ends {
		c.Close()
	}
	l.pass()
}

// Mend ends a stall or a cut.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
	l.pass()
}

func (l *Line) pass() {
	if l.held != nil {
		close(l.held)
		l.held = nil
	}
}

func (l *Line) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // the test has ended
		}
		l.running.Go(func() { l.connect(near) })
	}
}

func (l *Line) connect(near net.Conn) {
	defer near.Close()
	if !l.enter(near) {
		near.(*net.TCPConn).SetLinger(0) // refused
		return
	}
	defer l.leave(near)
	far, err := net.Dial(l.network, l.addr)
	if err != nil {
		return
	}
	defer far.Close()
	if !l.enter(far) {
		return
	}
	defer l.leave(far)
	var both sync.WaitGroup
	both.Go(func() {
		defer far.Close()
		if l.up != nil {
			l.up(far, near)
			return
		}
		l.carry(far, near, false)
	})
	both.Go(func() {
		defer near.Close()
		l.carry(near, far, true)
	})
	both.Wait()
}

func (l *Line) enter(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.ends[c] = true
	return true
}

func (l *Line) leave(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ends, c)
}

// carry keeps the order; what is late does not hold back what comes after it
// any longer than it is late itself.
func (l *Line) carry(to io.Writer, from io.Reader, late bool) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 64)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(pieces)
		for {
			b := make([]byte, 16<<10)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			pieces <- piece{b[:n], time.Now().Add(l.lateness(late))}
		}
	})
	defer reader.Wait()
	broken := false
	for p := range pieces {
		if broken {
			continue // until the reader has noticed, too
		}
		time.Sleep(time.Until(p.due))
		l.mu.Lock()
		held := l.held
		l.mu.Unlock()
		if held != nil {
			<-held
		}
		_, err := to.Write(p.bytes)
		broken = err != nil
	}
}

func (l *Line) lateness(late bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !late || l.most == 0 {
		return 0
	}
	return l.least + rand.N(l.most-l.least+1)
}
