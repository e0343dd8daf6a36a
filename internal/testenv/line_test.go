package testenv

import (
	"io"
	"net"
	"testing"
	"time"
)

// echo answers with what it hears.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

func Test_a_line_can_be_slow_silent_cut_and_mended(t *testing.T) {
	l := NewLine(t, "tcp", echo(t), nil)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	ask := func(c net.Conn, within time.Duration) (time.Duration, error) {
		begun := time.Now()
		c.SetDeadline(begun.Add(within))
		if _, err := c.Write([]byte("x")); err != nil {
			return 0, err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return time.Since(begun), err
	}
	c := dial()
	if _, err := ask(c, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	l.Slow(200*time.Millisecond, 300*time.Millisecond)
	if took, err := ask(c, 5*time.Second); err != nil || took < 200*time.Millisecond {
		t.Errorf("a slow line answered after %s, %v", took, err)
	}
	l.Slow(0, 0)
	l.Stall()
	if _, err := ask(c, 100*time.Millisecond); err == nil {
		t.Error("a stalled line answered")
	}
	l.Mend()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Errorf("what was held back is lost: %v", err)
	}
	l.Cut()
	if _, err := ask(c, 5*time.Second); err == nil {
		t.Error("a cut line answered")
	}
	if c, err := net.Dial("tcp", l.Addr()); err == nil {
		if _, err := ask(c, 5*time.Second); err == nil {
			t.Error("a cut line took a new connection")
		}
		c.Close()
	}
	l.Mend()
	if _, err := ask(dial(), 5*time.Second); err != nil {
		t.Errorf("a line that was mended: %v", err)
	}
}
