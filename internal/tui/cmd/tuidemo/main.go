// Command tuidemo plays a made-up crawl in the views of package tui, for
// people who work on them. It makes no request.
//
//	go run ./internal/tui/cmd/tuidemo [-plain | -json] [-speed N] [-for D] [-noise N]
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"tiptoe/internal/crawl"
	"tiptoe/internal/tui"
	"tiptoe/internal/tui/fakecrawl"
)

func main() {
	plain := flag.Bool("plain", false, "plain lines although this is a terminal")
	asJSON := flag.Bool("json", false, "JSON lines")
	speed := flag.Float64("speed", 1, "how much faster than real time")
	length := flag.Duration("for", 10*time.Minute, "end after this much real time")
	noise := flag.Int("noise", 1, "log lines every three seconds")
	flag.Parse()

	start := time.Now()
	elapsed := func() time.Duration { return time.Duration(float64(time.Since(start)) * *speed) }
	source := func() crawl.Status { return fakecrawl.Status(start, elapsed()) }
	ctx, cancel := context.WithTimeout(context.Background(), *length)
	defer cancel()

	term := tui.Detect(os.Stdout, os.Getenv)
	live := tui.NewLive(tui.LiveOptions{
		Source: source, Out: os.Stdout, Terminal: term,
		Stop:  func() { time.AfterFunc(2*time.Second, cancel) }, // the grace of a real stop
		Force: cancel,
	})
	lines := tui.NewJSON(os.Stdout)
	played := make(chan struct{})
	go func() {
		defer close(played)
		logger := slog.New(live.LogHandler(slog.LevelInfo))
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		last := time.Duration(0)
		for i := 1; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := elapsed()
			for _, ev := range fakecrawl.Pages(start, last, now) {
				live.Page(ev)
				if *asJSON {
					_ = lines.Page(ev) // Close tells
				}
			}
			last = now
			for n := 0; i%30 == 0 && n < *noise && !*asJSON; n++ {
				logger.Warn("throttled, slowing down", "domain", "limited.demo.test", "delay", "3s", "error_streak", n+1,
					"title", "\x1b[31mred \u202etfel ot thgir\u202c 東京")
			}
		}
	}()

	var err error
	switch {
	case *asJSON:
		<-played
		err = lines.Close()
	case term.Live && !*plain:
		err = live.Run(ctx)
	default:
		err = tui.Plain(ctx, tui.PlainOptions{Source: source, Out: os.Stdout})
	}
	cancel()
	<-played
	if err != nil {
		fmt.Fprintln(os.Stderr, "tuidemo:", err)
	}
	if !*asJSON {
		term = tui.Detect(os.Stdout, os.Getenv) // it may have been resized
		fmt.Print(tui.SummaryBox(fakecrawl.Summary(start, elapsed()), term))
	}
}
