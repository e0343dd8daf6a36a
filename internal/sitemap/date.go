package sitemap

import (
	"bytes"
	"time"
)

// parseTime reads a W3C date and time ("2026", "2026-05", "2026-05-04",
// "2026-05-04T10:20:30.5+02:00", also with a blank for the T and without a
// zone, which then is UTC), or the dates of RSS. Unreadable ones are zero.
func parseTime(b []byte) time.Time {
	b = bytes.TrimSpace(b)
	if t, ok := w3cTime(b); ok {
		return t
	}
	if len(b) > 40 {
		return time.Time{}
	}
	for _, layout := range [...]string{
		"Mon, _2 Jan 2006 15:04:05 -0700", "Mon, _2 Jan 2006 15:04:05 MST", "_2 Jan 2006 15:04:05 -0700",
		"_2 Jan 2006 15:04:05 MST", "Mon, _2 Jan 06 15:04:05 -0700", "Mon, _2 Jan 06 15:04:05 MST", "Mon, _2 Jan 2006 15:04 -0700",
	} {
		if t, err := time.Parse(layout, string(b)); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// number reads exactly n digits off the front of b.
func number(b []byte, n int) (v int, rest []byte, ok bool) {
	if len(b) < n {
		return 0, b, false
	}
	for _, c := range b[:n] {
		if c < '0' || c > '9' {
			return 0, b, false
		}
		v = v*10 + int(c-'0')
	}
	return v, b[n:], true
}

// after reads a separator and then two digits.
func after(b []byte, sep byte) (v int, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != sep {
		return 0, b, false
	}
	return number(b[1:], 2)
}

func w3cTime(b []byte) (time.Time, bool) {
	year, b, ok := number(b, 4)
	if !ok {
		return time.Time{}, false
	}
	month, day := 1, 1
	var hour, minute, second, nano int
	offset := 0
	if len(b) > 0 {
		if month, b, ok = after(b, '-'); !ok {
			return time.Time{}, false
		}
	}
	if len(b) > 0 {
		if day, b, ok = after(b, '-'); !ok {
			return time.Time{}, false
		}
	}
	if len(b) > 0 {
		if b[0]|0x20 != 't' && b[0] != ' ' {
			return time.Time{}, false
		}
		if hour, b, ok = number(b[1:], 2); !ok {
			return time.Time{}, false
		}
		if minute, b, ok = after(b, ':'); !ok {
			return time.Time{}, false
		}
		if s, rest, ok := after(b, ':'); ok {
			second, b = s, rest
			nano, b = fraction(b)
		}
		if offset, ok = zone(b); !ok {
			return time.Time{}, false
		}
	}
	if month < 1 || month > 12 || day < 1 || hour > 24 || minute > 59 || second > 60 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nano, time.UTC)
	if day > 28 && time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() != day {
		return time.Time{}, false // the 30th of February
	}
	return t.Add(-time.Duration(offset) * time.Minute), true
}

func fraction(b []byte) (nano int, rest []byte) {
	if len(b) == 0 || b[0] != '.' && b[0] != ',' {
		return 0, b
	}
	i, scale := 1, 100_000_000
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		nano += int(b[i]-'0') * scale
		scale /= 10
	}
	return nano, b[i:]
}

// zone reads "", "Z", "+02:00", "+0200" or "+02", as minutes east.
func zone(b []byte) (minutes int, ok bool) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || len(b) == 1 && b[0]|0x20 == 'z' {
		return 0, true
	}
	sign := 1
	switch b[0] {
	case '-':
		sign = -1
	case '+':
	default:
		return 0, false
	}
	h, b, ok := number(b[1:], 2)
	if !ok || h > 14 {
		return 0, false
	}
	m := 0
	if len(b) > 0 {
		if b[0] == ':' {
			b = b[1:]
		}
		if m, b, ok = number(b, 2); !ok || len(b) > 0 || m > 59 {
			return 0, false
		}
	}
	return sign * (h*60 + m), true
}
