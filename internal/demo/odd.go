package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// moved is made of redirects: chains, a loop, one to another host.
func moved(w *Web) *site {
	s := &site{name: "moved", title: "Removals Street", shows: "redirects: chains, a loop, one to itself, one to another host", robots: openRobots, pages: map[string]*page{}}
	to := func(from, location string, status int) {
		s.pages[from] = &page{status: status, location: location, title: "Moved", text: "We have moved. The new address is on the door."}
	}
	for n := 1; n <= 4; n++ {
		to(fmt.Sprintf("/number-%d", n), fmt.Sprintf("/number-%d", n+1), 301)
	}
	s.pages["/number-5"] = &page{title: "Number Five", text: "You followed four notes on four doors. Tea?", links: []link{{"/", "Back to the corner"}}}
	to("/ring/north", "/ring/east", 302)
	to("/ring/east", "/ring/south", 302)
	to("/ring/south", "/ring/west", 302)
	to("/ring/west", "/ring/north", 302)
	to("/mirror", "/mirror", 302)
	to("/corner-shop", w.at("shop", "/about"), 308)
	to("/relative", "garden", 307)
	to("/nowhere", "http://[not-an-address/", 302)
	s.pages["/garden"] = &page{title: "The Garden Behind the Street", text: "Nobody moves away from here."}
	for n := range 14 {
		to(fmt.Sprintf("/long/%d", n), fmt.Sprintf("/long/%d", n+1), 302)
	}
	s.pages["/long/14"] = &page{title: "The End of a Long Corridor", text: "Most visitors turn back before they get here. They are not wrong."}
	s.pages["/"] = &page{title: "Removals Street", text: "Everybody on this street has moved. Some have moved next door, some in a circle.",
		links: []link{{"/number-1", "Number one"}, {"/number-3", "Number three"}, {"/ring/north", "The ring road"}, {"/mirror", "The mirror"}, {"/corner-shop", "The corner shop"},
			{"/relative", "The garden gate"}, {"/nowhere", "Nowhere"}, {"/long/0", "The long corridor"}}}
	return s
}

// calendar has a page for every month there is, and three views of each.
func calendar() *site {
	s := &site{name: "calendar", title: "The Village Calendar", shows: "an endless calendar: a trap the crawler has to leave by itself", robots: openRobots,
		pages: map[string]*page{"/": {title: "The Village Calendar", text: "Nothing has ever been entered here, for any month, in any century. Look for yourself.",
			links: []link{{"/calendar/2026/11", "This month"}, {"/about", "About the village"}}}}}
	s.pages["/about"] = &page{title: "About the village", text: "Forty houses, one calendar.", links: []link{{"/", "Home"}}}
	s.dynamic = month
	return s
}

// month makes the page of /calendar/YYYY/MM with an optional view.
func month(target string) *page {
	path, query, hasQuery := strings.Cut(target, "?")
	rest, ok := strings.CutPrefix(path, "/calendar/")
	y, m, ok2 := strings.Cut(rest, "/")
	year, err1 := strconv.Atoi(y)
	mon, err2 := strconv.Atoi(m)
	if !ok || !ok2 || err1 != nil || err2 != nil || len(m) != 2 || year < 1 || year > 9999 || mon < 1 || mon > 12 {
		return nil
	}
	if hasQuery && query != "view=week" && query != "view=list" {
		return nil
	}
	first := time.Date(year, time.Month(mon), 1, 0, 0, 0, 0, time.UTC)
	at := func(t time.Time) string { return t.Format("/calendar/2006/01") }
	before, after := first.AddDate(0, -1, 0), first.AddDate(0, 1, 0)
	return &page{title: first.Format("January 2006"), text: "No events.",
		links: []link{{at(before), before.Format("January 2006")}, {at(after), after.Format("January 2006")}, {at(first.AddDate(1, 0, 0)), "A year later"},
			{path + "?view=week", "By week"}, {path + "?view=list", "As a list"}}}
}

// attic is where broken links are kept.
func attic(w *Web) *site {
	s := &site{name: "attic", title: "The Attic", shows: "broken links of every kind, and no robots.txt at all", pages: map[string]*page{}}
	s.pages["/"] = &page{title: "The Attic", text: "Things that used to lead somewhere.", links: []link{
		{"/trunk", "A trunk"}, {"/photographs", "Photographs"},
		{"/lost-umbrella", "A lost umbrella"}, {"/lost-glove", "A lost glove, the left one"}, {"/lost-thread", "A lost thread"},
		{"/burnt", "A burnt letter"},
		{w.at("dead", "/visit"), "An old friend's house"}, {w.at("shop", "/closed-shelf/"), "A shelf the shop no longer has"},
	}}
	s.pages["/trunk"] = &page{title: "A Trunk", text: "It holds links that are no links.", links: []link{
		{"mailto:nobody@attic.demo.test", "Write to nobody"}, {"javascript:void(0)", "Do nothing"}, {"tel:+000", "Call nobody"},
		{"http://", "A beginning"}, {"http://:80/", "A port without a harbour"}, {"#bottom", "The bottom of the trunk"},
		{"/trunk?", "The same trunk, with a question mark"}, {"photographs", "Photographs, again"}, {"/drawer%20with%20spaces", "A drawer"}, {"/a//b", "A double step"},
	}}
	s.pages["/trunk?"] = s.pages["/trunk"]
	s.pages["/photographs"] = &page{title: "Photographs", text: "Of people on the phone, mostly.", links: []link{{"/trunk", "Back into the trunk"}, {"/lost-album", "The lost album"}}}
	s.pages["/burnt"] = &page{status: 410, title: "Gone", text: "And it will not come back."}
	s.pages["/drawer%20with%20spaces"] = &page{title: "A Drawer with Spaces", text: "Percent signs keep the moths away."}
	return s
}
