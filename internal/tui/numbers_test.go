package tui

import (
	"math"
	"testing"
	"time"
)

func TestNumbersAreReadable(t *testing.T) {
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234",
		math.MaxInt64: "9,223,372,036,854,775,807", math.MinInt64: "-9,223,372,036,854,775,808"} {
		check("count", Count(n), want)
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 1240: "1.2 kB", 9949: "9.9 kB", 9950: "10 kB",
		41_300: "41 kB", 999_499: "999 kB", 999_500: "1.0 MB", 3_400_000_000: "3.4 GB", math.MaxInt64: "9.2 EB"} {
		check("bytes", Bytes(n), want)
	}
	for d, want := range map[time.Duration]string{
		0: "0 s", -time.Second: "0 s", 1200 * time.Microsecond: "1.2 ms", 5 * time.Millisecond: "5 ms", 850 * time.Millisecond: "850 ms",
		999600 * time.Microsecond: "1 s", 2500 * time.Millisecond: "2.5 s", 12 * time.Second: "12 s",
		59600 * time.Millisecond: "1 min", 250 * time.Second: "4 min 10 s", 4 * time.Minute: "4 min",
		65 * time.Minute: "1 h 5 min", 59*time.Minute + 59600*time.Millisecond: "1 h", 51 * time.Hour: "2 d 3 h",
		24*time.Hour - time.Second: "1 d",
	} {
		check("duration", Duration(d), want)
	}
	for d, want := range map[time.Duration]string{
		3 * time.Second: "a few seconds", 27 * time.Second: "about 25 s", 58 * time.Second: "about 1 min",
		26*time.Minute + 20*time.Second: "about 26 min", 83 * time.Minute: "about 1 h 25 min", 51*time.Hour + 20*time.Minute: "about 2 d 3 h",
	} {
		check("estimate", about(d), want)
	}
	for f, want := range map[float64]string{0: "0", -1: "0", 0.05: "0.05", 0.3: "0.3", 3.24: "3.2", 41.4: "41", 1234: "1,234",
		math.Inf(1): "0"} {
		check("rate", perSec(f), want)
	}
	check("rate", perSec(math.NaN()), "0")
	check("byte rate", bytesPerSec(41_000), "41 kB/s")
	check("byte rate", bytesPerSec(math.NaN()), "0 B/s")
	for d, want := range map[time.Duration]string{
		300 * time.Millisecond: "now", 12 * time.Second: "in 12 s", 59600 * time.Millisecond: "in 1 min",
		9*time.Minute + 40*time.Second: "in 10 min", time.Hour: "in 1 h", 30 * time.Hour: "in 1 d 6 h",
	} {
		check("wake-up", inTime(d), want)
	}
}
