package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tiptoe/internal/webfarm"
)

// farm is the simulated site in its own process.
type farm struct {
	cmd  *exec.Cmd
	addr string
	seed string
}

func startFarm(ctx context.Context, f flags, dir string) (*farm, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "webfarm"),
		"--pages", strconv.Itoa(f.Pages), "--links", strconv.Itoa(f.Links), "--page-size", strconv.Itoa(f.PageSize),
		"--seed", strconv.FormatUint(f.Seed, 10), "--latency", f.Latency.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startPinned(cmd, f.FarmCore); err != nil {
		return nil, fmt.Errorf("start the farm: %w", err)
	}
	fm := &farm{cmd: cmd}
	for in := bufio.NewScanner(out); fm.seed == "" && in.Scan(); {
		if v, ok := strings.CutPrefix(in.Text(), "address: "); ok {
			fm.addr = v
		}
		if v, ok := strings.CutPrefix(in.Text(), "seed: "); ok {
			fm.seed = v
		}
	}
	if fm.seed == "" {
		fm.stop()
		return nil, errors.New("start the farm: it said no address")
	}
	return fm, nil
}

func (fm *farm) stop() {
	fm.cmd.Process.Signal(syscall.SIGTERM)
	fm.cmd.Wait()
}

func (fm *farm) reset() error {
	resp, err := http.Post("http://"+fm.addr+"/-/reset", "text/plain", nil)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("reset the books: status %d", resp.StatusCode)
	}
	return nil
}

func (fm *farm) books() (b webfarm.Books, err error) {
	resp, err := http.Get("http://" + fm.addr + "/-/books")
	if err != nil {
		return b, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return b, err
	}
	return b, json.Unmarshal(body, &b)
}

// measure runs one crawler once. A crawler that ends badly is a Run with a
// Failure; an error means the measuring itself went wrong.
func measure(ctx context.Context, f flags, c crawler, fm *farm, dir string) (Run, error) {
	data, err := os.MkdirTemp(dir, "data-"+c.name+"-")
	if err != nil {
		return Run{}, err
	}
	defer os.RemoveAll(data)
	if err := fm.reset(); err != nil {
		return Run{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	args := c.args(fm.seed, fm.addr, data)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// Polite first: a crawler stopped by the time limit may say why.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &tail{buf: &stderr}
	farmBefore := cpuOf(fm.cmd.Process.Pid)
	began := time.Now()
	if err := startPinned(cmd, f.Core); err != nil {
		return Run{}, err
	}
	waitErr := cmd.Wait()
	seconds := time.Since(began).Seconds()
	farmCPU := cpuOf(fm.cmd.Process.Pid) - farmBefore
	b, err := fm.books()
	if err != nil {
		return Run{}, err
	}
	r := Run{
		Name: c.name, Seconds: seconds,
		Pages: b.Pages, Expected: b.Expected, Duplicates: b.Duplicates, Requests: b.Requests, Bytes: b.Bytes,
		CPUSeconds:  (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		PeakRSS:     peakRSS(cmd.ProcessState),
		FarmSeconds: farmCPU.Seconds(),
	}
	r.Complete = float64(b.Pages) / float64(b.Expected)
	r.PagesPerSecond = float64(b.Pages) / seconds
	if b.Pages > 0 {
		r.CPUPer1000 = r.CPUSeconds / float64(b.Pages) * 1000
	}
	if waitErr != nil {
		r.Failure = strings.TrimSpace(waitErr.Error() + ": " + lastLine(stderr.String()))
		if ctx.Err() != nil {
			r.Failure = fmt.Sprintf("not done after %v", f.Timeout)
		}
	}
	return r, nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// tail keeps the last few kilobytes of what a crawler complains about.
type tail struct{ buf *bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if extra := t.buf.Len() - 8<<10; extra > 0 {
		t.buf.Next(extra)
	}
	return len(p), nil
}
