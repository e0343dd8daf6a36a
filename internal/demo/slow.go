package demo

import (
	"fmt"
	"time"

	"tiptoe/internal/webfarm"
)

// slow takes 800 ms for everything.
func slow() *site {
	s := &site{name: "snail", title: "The Snail Post", shows: "a slow host: every answer takes 800 ms", robots: openRobots,
		delay: 800 * time.Millisecond, pages: map[string]*page{}}
	var letters [][2]string
	for n, to := range []string{
		"the Moon", "Aunt Clara", "the Tax Office", "a Friend at Sea", "the Editor", "My Younger Self", "the Cat Upstairs",
		"Whom It May Concern", "the Weather", "the Other Snail", "a Stranger on the 14:05", "the Lighthouse", "the Fox", "the Finder of This Bottle",
	} {
		letters = append(letters, [2]string{"Letter to " + to, fmt.Sprintf("Posted in spring, delivered in autumn, day %d of the journey. It said what such letters say, and it was glad to arrive.", 31+n*9)})
	}
	s.chain("The Snail Post", "We deliver. Eventually.", "/letters/", letters)
	return s
}

// busy counts requests: more than one a second is answered with 429.
func busy() *site {
	s := &site{name: "busy", title: "The Busy Bakery", shows: "a rate limit of one request a second, 429 with Retry-After", robots: openRobots,
		rate: webfarm.RateLimit{PerSecond: 1, Burst: 4, RetryAfter: 3 * time.Second}, pages: map[string]*page{}}
	var breads [][2]string
	for _, b := range []string{
		"Rye, Dark", "Rye, Less Dark", "Sunday Plait", "Poppy Roll", "Walnut Loaf", "Potato Bread", "The Long One", "The Flat One",
		"Yesterday's Bread", "Cinnamon Knot", "Bread of the House",
	} {
		breads = append(breads, [2]string{b, "Out of the oven at five. One per customer, one customer at a time: the baker has only two hands, and says so with a 429."})
	}
	s.chain("The Busy Bakery", "Please take a number. Whoever pushes will be asked to wait three seconds outside.", "/bread/", breads)
	return s
}

// patient asks for two seconds between requests.
func patient() *site {
	s := &site{name: "patient", title: "The Tea Garden", shows: "robots.txt asks for a Crawl-delay of two seconds",
		robots: "User-agent: *\nCrawl-delay: 2\nDisallow:\n", pages: map[string]*page{}}
	var teas [][2]string
	for n, t := range []string{
		"Morning Green", "White Peony", "Smoked Leaf", "Jasmine at Dusk", "Roasted Twig", "First Flush", "Second Flush", "Fog on the Hill",
		"Mint, Simply", "Lime Blossom", "Rosehip", "Nettle", "Old Tree", "Rice Tea", "Chrysanthemum", "Buckwheat", "Lemon Balm", "Thyme",
		"Orchard Black", "Quiet Oolong", "Winter Spice", "Last Leaf",
	} {
		teas = append(teas, [2]string{t, fmt.Sprintf("Let it stand for %d minutes. Nobody has ever improved a tea by asking for it twice a second.", 2+n%5)})
	}
	s.chain("The Tea Garden", "Sit down. The next cup comes in two seconds, not before; it says so at the gate.", "/teas/", teas)
	return s
}

// flaky stumbles: some pages answer 503 before they answer, one never does.
func flaky() *site {
	s := &site{name: "flaky", title: "The Old Theatre", shows: "503 on first tries, and one page that is always 500", robots: openRobots, pages: map[string]*page{}}
	s.chain("The Old Theatre", "The curtain sticks, the lamp flickers, the show goes on. Some of these pages need a second try.", "/acts/", [][2]string{
		{"Overture", "The orchestra tunes. This takes most of the evening."},
		{"The Ghost Forgets a Line", "The prompter whispers it, the gallery repeats it, the ghost bows."},
		{"A Duel with Umbrellas", "Both survive. The umbrellas do not."},
		{"Interval", "Lemonade, and a long look at the ceiling."},
		{"The Letter Arrives", "It is for the other house."},
		{"Storm, Painted", "The thunder is a tin sheet; the rain is real, the roof being what it is."},
		{"Reconciliation", "On the third attempt, with the lights back on."},
		{"Curtain", "It sticks."},
	})
	for n, at := range []string{"/acts/the-ghost-forgets-a-line", "/acts/interval", "/acts/reconciliation"} {
		s.pages[at].failures = 1 + n/2 // the last one needs a third try
	}
	s.pages["/"].links = append(s.pages["/"].links, link{"/trapdoor", "The trapdoor"})
	s.pages["/trapdoor"] = &page{status: 500, title: "The trapdoor", text: "It has been broken since the premiere."}
	return s
}
