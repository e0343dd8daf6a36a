package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"tiptoe/internal/webfarm"
)

func TestTheCommandSaysWhereItIsAndLeavesItsBooks(t *testing.T) {
	dir := t.TempDir()
	robots := filepath.Join(dir, "robots.txt")
	if err := os.WriteFile(robots, []byte("User-agent: nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var f flags
	parser, err := kong.New(&f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--pages=7", "--hosts=1", "--robots-file=" + robots, "--books=" + filepath.Join(dir, "books.json")}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, f, w)
		w.Close()
	}()
	said := map[string]string{}
	in := bufio.NewScanner(r)
	for len(said) < 3 && in.Scan() {
		key, value, _ := strings.Cut(in.Text(), ": ")
		said[key] = value
	}
	for path, want := range map[string]string{"": "<!doctype html>", "robots.txt": "User-agent: nobody\n"} {
		resp, err := http.Get(said["seed"] + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.HasPrefix(string(body), want) {
			t.Errorf("%q says %q", path, body)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadFile(filepath.Join(dir, "books.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b webfarm.Books
	if err := json.Unmarshal(left, &b); err != nil {
		t.Fatal(err)
	}
	if b.Pages != 1 || b.Robots != 1 || b.Expected != 7 || "http://"+b.Hosts[0].Host+"/" != said["seed"] {
		t.Errorf("books %+v, said %v", b, said)
	}
}
