package job

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Rule says when a schedule is due: every 6, 12, 24 or 48 hours, or the five
// fields of cron (minute, hour, day of month, month, day of week) in UTC.
type Rule struct {
	every                         time.Duration
	minute, hour, dom, month, dow uint64 // bit n set: n matches
	anyDay, anyWeekday            bool
}

// ParseRule reads a rule.
func ParseRule(s string) (Rule, error) {
	switch s = strings.TrimSpace(s); s {
	case "6h", "12h", "24h", "48h":
		d, err := time.ParseDuration(s)
		return Rule{every: d}, err
	}
	f := strings.Fields(s)
	if len(f) != 5 {
		return Rule{}, fmt.Errorf("%q is not a rule; write 6h, 12h, 24h or 48h, or five fields of cron such as \"0 3 * * 1\"", s)
	}
	var r Rule
	var err error
	for i, part := range []struct {
		name   string
		to     *uint64
		lo, hi int
		names  string
	}{
		{"minute", &r.minute, 0, 59, ""},
		{"hour", &r.hour, 0, 23, ""},
		{"day of month", &r.dom, 1, 31, ""},
		{"month", &r.month, 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
		{"day of week", &r.dow, 0, 7, "sun mon tue wed thu fri sat"},
	} {
		if *part.to, err = cronField(f[i], part.lo, part.hi, strings.Fields(part.names)); err != nil {
			return Rule{}, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if r.dow&(1<<7) != 0 { // 7 is Sunday too
		r.dow |= 1
	}
	r.anyDay, r.anyWeekday = strings.HasPrefix(f[2], "*"), strings.HasPrefix(f[4], "*")
	if _, ok := r.next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return Rule{}, fmt.Errorf("%q never comes", s)
	}
	return r, nil
}

// cronField reads a list of values, ranges and steps.
func cronField(s string, lo, hi int, names []string) (set uint64, err error) {
	value := func(t string) (int, error) {
		for i, n := range names {
			if strings.EqualFold(t, n) {
				return i + lo, nil
			}
		}
		n, err := strconv.ParseUint(t, 10, 8)
		if err != nil || int(n) < lo || int(n) > hi {
			return 0, fmt.Errorf("%q is not from %d to %d", t, lo, hi)
		}
		return int(n), nil
	}
	for part := range strings.SplitSeq(s, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			n, err := strconv.ParseUint(stepText, 10, 8)
			if step = int(n); err != nil || step < 1 || step > hi {
				return 0, fmt.Errorf("%q is not a step", stepText)
			}
		}
		from, to := lo, hi
		if span != "*" {
			a, b, ranged := strings.Cut(span, "-")
			if from, err = value(a); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = value(b); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
			if to < from {
				return 0, fmt.Errorf("%q runs backwards", span)
			}
		}
		for n := from; n <= to; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

// Next is the first time after t at which the rule is due. Rules in hours
// count from t, so that the jobs of many tenants do not all begin on the hour.
func (r Rule) Next(t time.Time) time.Time {
	if r.every > 0 {
		return t.Add(r.every)
	}
	next, _ := r.next(t)
	return next
}

// next finds a cron time, looking 41 years ahead: a 29 February on a given
// weekday is at most 40 away.
func (r Rule) next(t time.Time) (time.Time, bool) {
	t = t.UTC().Truncate(time.Minute).Add(time.Minute)
	end := t.AddDate(41, 0, 0)
	for t.Before(end) {
		switch {
		case r.month&(1<<t.Month()) == 0:
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		case !r.day(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
		case r.hour&(1<<t.Hour()) == 0:
			t = t.Truncate(time.Hour).Add(time.Hour)
		case r.minute&(1<<t.Minute()) == 0:
			rest := r.minute >> t.Minute()
			if rest == 0 {
				t = t.Truncate(time.Hour).Add(time.Hour)
			} else {
				t = t.Add(time.Duration(bits.TrailingZeros64(rest)) * time.Minute)
			}
		default:
			return t, true
		}
	}
	return time.Time{}, false
}

// day: when both day fields are restricted either may match, as cron has it.
func (r Rule) day(t time.Time) bool {
	dom, dow := r.dom&(1<<t.Day()) != 0, r.dow&(1<<t.Weekday()) != 0
	if r.anyDay || r.anyWeekday {
		return dom && dow
	}
	return dom || dow
}
