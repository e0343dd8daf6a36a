package scope

import (
	"strconv"
	"strings"
	"time"

	"tiptoe/internal/weburl"
)

// window is the time in which calendar pages are believed, in months.
type window struct {
	first, last int // year*12 + month-1
}

const (
	defaultAhead = 2  // years; events are announced, not for the next decade
	defaultBack  = 40 // years; the web's own archives are younger
)

func newWindow(now time.Time, ahead, back int) window {
	w := window{first: 0, last: 10000 * 12}
	if now.IsZero() {
		return w
	}
	middle := now.UTC().Year()*12 + int(now.UTC().Month()) - 1
	if ahead == 0 {
		ahead = defaultAhead
	}
	if back == 0 {
		back = defaultBack
	}
	if ahead > 0 {
		w.last = middle + 12*ahead
	}
	if back > 0 {
		w.first = middle - 12*back
	}
	return w
}

// excludes returns the rule that a calendar page outside the window breaks.
func (w window) excludes(u weburl.URL) string {
	d := findDate(u)
	switch {
	case d.shape == noDate:
		return ""
	case d.month > w.last:
		return "calendar page of " + d.String() + ", after " + monthString(w.last)
	case d.month < w.first:
		return "calendar page of " + d.String() + ", before " + monthString(w.first)
	}
	return ""
}

// date is a month named by a URL that looks like a page of a calendar.
type date struct {
	shape dateShape
	month int // year*12 + month-1
}

type dateShape uint8

const (
	noDate dateShape = iota
	// calendarDate is in the query or in a path that speaks of calendars:
	// machines make such pages, as many as one asks for.
	calendarDate
	// archiveDate ends any other path: a day of a blog or a newspaper.
	archiveDate
)

func (d date) String() string { return monthString(d.month) }

func monthString(m int) string {
	s := strconv.Itoa(m%12 + 1)
	if len(s) == 1 {
		s = "0" + s
	}
	return strconv.Itoa(m/12) + "-" + s
}

// findDate finds the date that a calendar page is about. A date counts if it
// ends the path or is the value of a parameter: with words after it, as in
// /2019/05/title, it is the address of an article, and articles are finite.
func findDate(u weburl.URL) date {
	if d := pathDate(u.Path()); d.shape != noDate {
		return d
	}
	for q := u.Query(); q != ""; {
		var key, value string
		key, value, q = nextParam(q)
		if m, ok := paramDate(key, value); ok {
			return date{calendarDate, m}
		}
	}
	return date{}
}

func pathDate(path string) date {
	path = strings.TrimSuffix(path, "/")
	if path == "" {
		return date{}
	}
	rest, last := cutLast(path)
	name, _, _ := strings.Cut(last, ".") // 2019-05.html
	shape := archiveDate
	if m, ok := dashed(name); ok {
		if speaksOf(rest, calendarWords) {
			shape = calendarDate
		}
		return date{shape, m}
	}
	// Slashes: /2019/05 and /2019/05/17. Numbers in a row are also threads
	// with a page number, so a word, a full date with leading zeros, or a
	// path of nothing else must speak for the date.
	if !isNumber(name) || len(name) > 2 {
		return date{}
	}
	rest2, second := cutLast(rest)
	rest3, third := cutLast(rest2)
	var y, m int
	var full bool
	before := rest2
	switch {
	case isYear(second):
		y, m = atoi(second), atoi(name)
	case isYear(third) && isNumber(second) && len(second) <= 2:
		y, m = atoi(third), atoi(second)
		full = len(second) == 2 && len(name) == 2
		before = rest3
	default:
		return date{}
	}
	if m < 1 || m > 12 {
		return date{}
	}
	switch {
	case speaksOf(before, calendarWords):
		shape = calendarDate
	case !full && before != "" && !speaksOf(before, archiveWords):
		return date{}
	}
	return date{shape, y*12 + m - 1}
}

var (
	calendarWords = []string{"calend", "/cal", "event", "agenda", "schedul", "booking", "/month", "/week", "/day"}
	archiveWords  = []string{"archiv", "/date", "/blog", "/news"}
)

func speaksOf(path string, words []string) bool {
	for _, w := range words {
		if strings.Contains(path, w) {
			return true
		}
	}
	return false
}

// paramDate reads ?date=2019-05, ?day=20190517 and ?year=2019.
func paramDate(key, value string) (int, bool) {
	if m, ok := dashed(value); ok && (len(value) != 8 || containsFold(key, "date") || containsFold(key, "day")) {
		return m, true
	}
	if isYear(value) && (equalFold(key, "year") || equalFold(key, "yr") || equalFold(key, "y") || equalFold(key, "calyear")) {
		return atoi(value) * 12, true
	}
	return 0, false
}

// dashed reads 2019-05, 2019-05-17, 2019_05 and 20190517.
func dashed(s string) (month int, ok bool) {
	switch {
	case len(s) == 8 && isNumber(s):
		day := atoi(s[6:])
		month, ok = ym(s[:4], s[4:6])
		return month, ok && day >= 1 && day <= 31
	case len(s) == 7 && (s[4] == '-' || s[4] == '_'):
		return ym(s[:4], s[5:])
	case len(s) >= 10 && s[4] == '-' && s[7] == '-' && isNumber(s[8:10]) && (len(s) == 10 || s[10] == 'T'):
		return ym(s[:4], s[5:7])
	}
	return 0, false
}

func ym(y, m string) (int, bool) {
	if !isYear(y) || !isNumber(m) {
		return 0, false
	}
	n := atoi(m)
	return atoi(y)*12 + n - 1, n >= 1 && n <= 12
}

// isYear accepts the years a calendar passes on its way out of the window.
func isYear(s string) bool {
	return len(s) == 4 && isNumber(s) && s >= "1600" && s <= "2399"
}

func atoi(digits string) int {
	n := 0
	for i := range len(digits) {
		n = n*10 + int(digits[i]-'0')
	}
	return n
}

func cutLast(path string) (before, last string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}
