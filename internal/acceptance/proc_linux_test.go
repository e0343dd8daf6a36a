package acceptance

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// procNumber reads a field of /proc/PID/status that is in kB, as bytes.
func (p *process) procNumber(field string) int64 {
	p.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + field + `:\s+(\d+) kB$`).FindSubmatch(raw)
	if m == nil {
		p.t.Fatalf("the system does not say %s", field)
	}
	kb, _ := strconv.ParseInt(string(m[1]), 10, 64) // the pattern lets nothing else pass
	return kb << 10
}

// cpu is the processor time that the process has used so far, exact to 10 ms.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	// Behind the name, which may hold anything, user and system time are the
	// 12th and 13th field, in hundredths of a second.
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// goroutines asks the process, which must have been started with --pprof.
func goroutines(t *testing.T, addr string) (n int) {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := fmt.Fscanf(resp.Body, "goroutine profile: total %d", &n); err != nil {
		t.Fatalf("read the goroutine profile: %v", err)
	}
	return n
}
