package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

func Test_a_rule_is_due_when_cron_would_be(t *testing.T) {
	for _, c := range []struct{ rule, after, next string }{
		{"6h", "2026-03-01 10:20:30", "2026-03-01 16:20:30"},
		{"12h", "2026-03-01 10:20:30", "2026-03-01 22:20:30"},
		{"24h", "2026-03-01 10:20:30", "2026-03-02 10:20:30"},
		{" 48h ", "2026-03-01 10:20:30", "2026-03-03 10:20:30"},
		{"* * * * *", "2026-03-01 10:20:30", "2026-03-01 10:21:00"},
		{"* * * * *", "2026-03-01 10:20:00", "2026-03-01 10:21:00"},
		{"*/15 * * * *", "2026-03-01 10:59:59", "2026-03-01 11:00:00"},
		{"5-20/5 3 * * *", "2026-03-01 03:05:00", "2026-03-01 03:10:00"},
		{"40/10 * * * *", "2026-03-01 03:50:00", "2026-03-01 04:40:00"},
		{"0 3 * * 1", "2026-03-01 00:00:00", "2026-03-02 03:00:00"},
		{"0 3 * * MON,fri", "2026-03-02 03:00:00", "2026-03-06 03:00:00"},
		{"0 0 * * 7", "2026-03-02 00:00:00", "2026-03-08 00:00:00"},
		{"0 0 * * 5-7", "2026-03-06 00:00:00", "2026-03-07 00:00:00"},
		{"0 0 1 jan *", "2026-01-01 00:00:00", "2027-01-01 00:00:00"},
		{"0 0 31 * *", "2026-01-31 00:00:00", "2026-03-31 00:00:00"},
		{"0 0 29 2 *", "2026-01-31 00:00:00", "2028-02-29 00:00:00"},
		{"0 0 29 2 *", "2096-02-29 00:00:00", "2104-02-29 00:00:00"}, // 2100 has none
		{"0 0 13 * 5", "2026-03-01 00:00:00", "2026-03-06 00:00:00"}, // either day
		{"0 0 */2 * 5", "2026-03-01 00:00:00", "2026-03-13 00:00:00"},
		{"0 0 29 2 */4", "2032-02-29 00:00:00", "2052-02-29 00:00:00"}, // a leap day that is a Sunday or a Thursday
		{"59 23 31 12 *", "2026-12-31 23:59:00", "2027-12-31 23:59:00"},
	} {
		r, err := ParseRule(c.rule)
		if got := r.Next(at(c.after)); err != nil || !got.Equal(at(c.next)) {
			t.Errorf("%q after %s: %s (%v), want %s", c.rule, c.after, got.Format("2006-01-02 15:04:05"), err, c.next)
		}
	}
	r, err := ParseRule("0 3 * * *") // UTC, wherever the caller is
	if got := r.Next(time.Date(2026, 7, 1, 1, 0, 0, 0, time.FixedZone("west", -5*3600))); err != nil || !got.Equal(at("2026-07-02 03:00:00")) {
		t.Error(got, err)
	}
}

func Test_a_rule_that_makes_no_sense_is_refused_with_the_field_that_is_wrong(t *testing.T) {
	for rule, want := range map[string]string{
		"":                     "is not a rule; write 6h, 12h, 24h or 48h, or five fields",
		"7h":                   "is not a rule",
		"@daily":               "is not a rule",
		"* * * *":              "is not a rule",
		"* * * * * *":          "is not a rule",
		"60 * * * *":           `minute: "60" is not from 0 to 59`,
		"* 24 * * *":           `hour: "24" is not from 0 to 23`,
		"* * 0 * *":            `day of month: "0" is not from 1 to 31`,
		"* * * 13 *":           `month: "13" is not from 1 to 12`,
		"* * * foo *":          `month: "foo" is not from 1 to 12`,
		"* * * * 8":            `day of week: "8" is not from 0 to 7`,
		"-1 * * * *":           `minute: "" is not from 0 to 59`,
		"5-1 * * * *":          `minute: "5-1" runs backwards`,
		"*/0 * * * *":          `minute: "0" is not a step`,
		"*/x * * * *":          `minute: "x" is not a step`,
		"1,, * * * *":          `minute: "" is not from 0 to 59`,
		"+5 * * * *":           `minute: "+5" is not from 0 to 59`,
		"*/+5 * * * *":         `minute: "+5" is not a step`,
		"0 0 31 2 *":           `"0 0 31 2 *" never comes`,
		"0 0 31 4,6,9,11 *":    `never comes`,
		"99999999999999999999": "is not a rule",
	} {
		if _, err := ParseRule(rule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", rule, err, want)
		}
	}
}

// field is a cron field in two forms: as text and as the values it means.
type field struct {
	text   string
	values []int
}

func drawField(t *rapid.T, name string, lo, hi int) field {
	var parts []string
	set := map[int]bool{}
	for range rapid.IntRange(1, 3).Draw(t, name+" parts") {
		from := rapid.IntRange(lo, hi).Draw(t, name+" from")
		to := rapid.IntRange(from, hi).Draw(t, name+" to")
		step := 1
		text := ""
		switch rapid.IntRange(0, 4).Draw(t, name+" kind") {
		case 0:
			from, to, text = lo, hi, "*"
		case 1:
			step = rapid.IntRange(1, hi).Draw(t, name+" step")
			from, to, text = lo, hi, "*/"+strconv.Itoa(step)
		case 2:
			text, to = strconv.Itoa(from), from
		case 3:
			text = fmt.Sprintf("%d-%d", from, to)
		case 4:
			step = rapid.IntRange(1, hi).Draw(t, name+" step")
			text = fmt.Sprintf("%d-%d/%d", from, to, step)
		}
		for n := from; n <= to; n += step {
			set[n] = true
		}
		parts = append(parts, text)
	}
	f := field{text: strings.Join(parts, ",")}
	for n := range set {
		f.values = append(f.values, n)
	}
	return f
}

func (f field) has(n int) bool { return slices.Contains(f.values, n) }
func (f field) any() bool      { return strings.HasPrefix(f.text, "*") }

// Every minute is looked at, one after the other, with nothing clever.
func Test_the_next_time_of_a_rule_is_the_first_minute_that_matches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minute, hour, dom := drawField(t, "minute", 0, 59), drawField(t, "hour", 0, 23), drawField(t, "day", 1, 31)
		month, dow := drawField(t, "month", 1, 12), drawField(t, "weekday", 0, 7)
		text := strings.Join([]string{minute.text, hour.text, dom.text, month.text, dow.text}, " ")
		r, err := ParseRule(text)
		if err != nil {
			if strings.Contains(err.Error(), "never comes") {
				return // the table above has those
			}
			t.Fatalf("%q: %v", text, err)
		}
		from := at("2024-01-01 00:00:00").Add(time.Duration(rapid.Int64Range(0, 3*366*24*3600).Draw(t, "from")) * time.Second)
		matches := func(m time.Time) bool {
			day, week := dom.has(m.Day()), dow.has(int(m.Weekday())) || m.Weekday() == 0 && dow.has(7)
			either := day || week
			if dom.any() || dow.any() {
				either = day && week
			}
			return minute.has(m.Minute()) && hour.has(m.Hour()) && month.has(int(m.Month())) && either
		}
		got := r.Next(from)
		if !got.After(from) || !matches(got) {
			t.Fatalf("%q after %s is %s", text, from, got)
		}
		for m := from.Truncate(time.Minute).Add(time.Minute); m.Before(got) && m.Before(from.AddDate(0, 3, 0)); m = m.Add(time.Minute) {
			if matches(m) {
				t.Fatalf("%q after %s is %s, and %s was passed over", text, from, got, m)
			}
		}
	})
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"6h", "0 3 * * 1", "*/15 0-6 1,15 jan-mar sun", "0 0 29 2 *", "1-2-3 * * * *", "*/9999999999 * * * *"} {
		f.Add(s)
	}
	from := at("2026-05-17 12:34:56")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRule(s)
		if err != nil {
			return
		}
		for next := range 3 {
			if got := r.Next(from); !got.After(from) {
				t.Fatalf("%q, %d: %s after %s", s, next, got, from)
			}
		}
	})
}
