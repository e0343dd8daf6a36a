package tui

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count writes a number with thousands separators: 1,234,567.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Bytes writes a size in SI units: 999 B, 1.2 kB, 41 kB, 3.4 GB.
func Bytes(n int64) string {
	if n < 1000 {
		return Count(n) + " B"
	}
	v := float64(n)
	for _, unit := range []string{"kB", "MB", "GB", "TB", "PB", "EB"} {
		v /= 1000
		// 9.95 and 999.5 are where rounding would reach the next digit.
		switch {
		case v < 9.95:
			return fmt.Sprintf("%.1f %s", v, unit)
		case v < 999.5:
			return fmt.Sprintf("%.0f %s", v, unit)
		}
	}
	return fmt.Sprintf("%.0f EB", v)
}

// Duration writes a time span with its two largest units: 850 ms, 2.5 s,
// 4 min 10 s, 1 h 5 min, 2 d 3 h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d == 0:
		return "0 s"
	case d < 10*time.Millisecond:
		return trimZero(fmt.Sprintf("%.1f", float64(d)/1e6)) + " ms"
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < 9950*time.Millisecond:
		return trimZero(fmt.Sprintf("%.1f", d.Seconds())) + " s"
	}
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	}
	d = d.Round(time.Minute)
	if d < 24*time.Hour {
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	}
	return twoUnits(d.Round(time.Hour), 24*time.Hour, "d", time.Hour, "h")
}

func twoUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	s := Count(int64(d/big)) + " " + bigName
	if rest := d % big / small; rest > 0 {
		s += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return s
}

func trimZero(s string) string { return strings.TrimSuffix(s, ".0") }

// about rounds a time left to what an estimate may claim to know.
func about(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return "a few seconds"
	case d < time.Minute:
		d = d.Round(5 * time.Second)
	case d < time.Hour:
		d = d.Round(time.Minute)
	case d < 24*time.Hour:
		d = d.Round(5 * time.Minute)
	default:
		d = d.Round(time.Hour)
	}
	return "about " + Duration(d)
}

// perSec writes a rate without its unit.
func perSec(f float64) string {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0) || f <= 0:
		return "0"
	case f < 0.095:
		return fmt.Sprintf("%.2f", f)
	case f < 9.95:
		return fmt.Sprintf("%.1f", f)
	case f < math.MaxInt64:
		return Count(int64(math.Round(f)))
	}
	return "0"
}

// bytesPerSec is Bytes for a rate, which may be a float from a smoother.
func bytesPerSec(f float64) string {
	if math.IsNaN(f) || f < 0 || f > math.MaxInt64/2 {
		f = 0
	}
	return Bytes(int64(math.Round(f))) + "/s"
}

// inTime writes the time until something, beside its time on the clock: the
// nearer, the finer.
func inTime(d time.Duration) string {
	switch {
	case d < time.Second:
		return "now"
	case d < 59500*time.Millisecond:
		return "in " + Duration(d.Round(time.Second))
	case d < time.Hour-30*time.Second:
		return "in " + Duration(d.Round(time.Minute))
	}
	return "in " + Duration(d.Round(time.Hour))
}
