package demo

import (
	"fmt"
	"strings"
)

// allSites lists the hosts in the order in which they are described.
func allSites(w *Web) []*site {
	return []*site{
		shop(w), blog(w), slow(), busy(), patient(), flaky(),
		museum(), moved(w), calendar(), attic(w), library(),
	}
}

const openRobots = "User-agent: *\nDisallow:\n"

// shop is a site as it should be: quick, linked well, nothing wrong.
func shop(w *Web) *site {
	s := &site{name: "shop", title: "The Lantern Shop", shows: "a healthy shop, quick and well linked",
		robots: openRobots, pages: map[string]*page{}}
	shelves := []struct {
		name, text string
		things     []string
	}{
		{"Lanterns", "For dark cellars, long gardens and short winters.",
			[]string{"Harbour Lantern", "Moth Lantern", "Lantern for Reading Maps", "Small Brave Lantern", "Lantern Without a Door", "Twin Lantern", "Borrowed Lantern"}},
		{"Kettles", "All of them whistle. Two of them can be asked not to.",
			[]string{"Whistling Kettle", "Quiet Kettle", "Kettle for Two", "Mountain Kettle", "Kettle With a Dent", "Blue Kettle"}},
		{"Maps", "Some of these places exist.",
			[]string{"Map of the Harbour", "Map of All Puddles", "Night Map", "Map of the Map Shop", "Tide Table for Lakes", "Folded Coastline", "Map With a Coffee Ring"}},
		{"Boots", "Walked in by volunteers.",
			[]string{"Puddle Boots", "Left Boots Only", "Boots for Standing Still", "Seven-Mile Boots", "Sunday Boots"}},
		{"Umbrellas", "Tested indoors, against all advice.",
			[]string{"Umbrella for Drizzle", "Storm Umbrella", "Umbrella With a View", "Pocket Umbrella", "Umbrella for a Cat", "Second Umbrella"}},
	}
	home := &page{title: "Good evening", text: "We sell lanterns, and what else one needs to walk home with one. Everything is in stock, nothing is urgent."}
	for _, shelf := range shelves {
		at := "/" + slug(shelf.name) + "/"
		home.links = append(home.links, link{at, shelf.name})
		list := &page{title: shelf.name, text: shelf.text}
		for n, thing := range shelf.things {
			list.links = append(list.links, link{slug(thing), thing}) // relative, as shops do
			other := shelf.things[(n+3)%len(shelf.things)]
			s.pages[at+slug(thing)] = &page{
				title: thing,
				text: fmt.Sprintf("%s. %d crowns, wrapped in brown paper.\n\nPeople who looked at this also looked out of the window, and at the %s.",
					thing, 12+7*n+len(thing), other),
				links: []link{{slug(other), other}, {"../" + slug(shelf.name) + "/", "Back to " + strings.ToLower(shelf.name)}},
				head:  "<link rel=\"canonical\" href=\"" + w.at("shop", at+slug(thing)) + "\">\n",
			}
		}
		s.pages[at] = list
	}
	home.links = append(home.links, link{"/about", "About us"}, link{w.at("blog", "/"), "Our neighbour writes a blog"}, link{w.at("busy", "/"), "The bakery next door"})
	s.pages["/"] = home
	s.pages["/about"] = &page{title: "About us", text: "Founded on a Tuesday. The founder's portrait hangs behind the umbrellas, for obvious reasons.",
		links: []link{{"/#top", "Home, from the top"}, {w.at("museum", "/"), "We lent them a lantern"}}}
	return s
}

// blog has a sitemap, and posts that only the sitemap knows.
func blog(w *Web) *site {
	s := &site{name: "blog", title: "Notes from a Slow Walk", shows: "a blog whose older posts are only in its sitemap", pages: map[string]*page{}}
	s.robots = openRobots + "Sitemap: " + w.at("blog", "/sitemap.xml") + "\n"
	posts := [][2]string{
		{"On Being Let In", "A door is a question. Most of good manners is waiting for the answer before turning the handle."},
		{"The Fox Crosses at the Light", "It was four in the morning and there was no car. The fox sat down and waited for green. I have thought about it since."},
		{"How to Leave a Library", "Quietly, with both hands full, and later than you meant to."},
		{"Small Talk with a Lighthouse", "It says the same thing every nine seconds and is never boring. Some ships owe it everything."},
		{"A Theory of Benches", "Every bench faces the thing somebody once thought worth sitting for. Read a town by its benches."},
		{"What the Tide Took", "One glove, the left one. It brought the right one in March. I bought gloves in between."},
		{"The Postman's Shortcut", "There is no shortcut. He says so to everyone, so that he has it to himself."},
		{"In Praise of the Second Try", "Failing at once is information. Failing twice, a little later, is patience."},
	}
	old := [][2]string{
		{"First Post", "Is this on?"},
		{"A Letter Nobody Links To", "You found this in the sitemap, like everybody who reads the small print. Thank you."},
		{"Rain, Reviewed", "Four stars. Would stand in it again."},
		{"Notes on a Borrowed Ladder", "It was returned on Thursday, one rung wiser."},
		{"The Year Without a Clock", "We ate when hungry and were on time for nothing. It was the year we met everyone."},
		{"An Index of Small Noises", "Kettle, gate, moth, pencil, snow."},
	}
	s.chain("Notes from a Slow Walk", "Written on foot, one post at a time. The newest are listed here; the old ones have been forgotten by every page but the sitemap.", "/posts/", posts)
	var list strings.Builder
	list.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n")
	for n, post := range append(posts, old...) {
		at := "/posts/" + slug(post[0])
		if s.pages[at] == nil {
			s.pages[at] = &page{title: post[0], text: post[1], links: []link{{"/", "To the newer posts"}}}
		}
		fmt.Fprintf(&list, "<url><loc>%s</loc><lastmod>2026-%02d-14</lastmod></url>\n", w.at("blog", at), 11-n%11)
	}
	list.WriteString("</urlset>\n")
	s.pages["/sitemap.xml"] = &page{contentType: "application/xml", body: []byte(list.String())}
	return s
}

// museum keeps rooms closed by robots.txt, with one exception inside.
func museum() *site {
	s := &site{name: "museum", title: "Museum of Ordinary Things", shows: "rooms closed by robots.txt, with one door left open",
		robots: "User-agent: *\nDisallow: /storeroom/\nAllow: /storeroom/open-day\nDisallow: /*?sort=\nDisallow: /staff$\n",
		pages:  map[string]*page{}}
	s.chain("Museum of Ordinary Things", "Open daily. Please mind the rooms marked private: the crawler will list each of them with the line that closed it.", "/rooms/", [][2]string{
		{"The Hall of Umbrellas", "All of them found, none of them claimed."},
		{"Keys Without Locks", "Four hundred and six. Visitors are invited to try their luggage."},
		{"The Last Telephone Book", "Open at the letter M. Someone has underlined a name, kindly."},
		{"Pencils, Used", "The shorter they are, the more they know."},
		{"A Chair from Every Decade", "You may sit on the one from next year."},
		{"The Quiet Room", "There is nothing in it. It is our most popular exhibit."},
	})
	home := s.pages["/"]
	for n := range 8 {
		at := fmt.Sprintf("/storeroom/crate-%d", n+1)
		home.links = append(home.links, link{at, fmt.Sprintf("Crate %d (private)", n+1)})
		s.pages[at] = &page{title: "You should not be here", text: "This crate is closed by robots.txt.", closed: true}
	}
	home.links = append(home.links, link{"/storeroom/open-day", "Storeroom, open day"}, link{"/staff", "Staff"}, link{"/staff/portraits", "Portraits of our staff"}, link{"/rooms/?sort=age", "Rooms by age"})
	s.pages["/storeroom/open-day"] = &page{title: "Open Day in the Storeroom", text: "One longer rule beats one shorter rule: this page is allowed although its folder is not."}
	s.pages["/staff"] = &page{title: "Staff only", text: "Closed by a rule that ends in a dollar sign.", closed: true}
	s.pages["/staff/portraits"] = &page{title: "Portraits", text: "The dollar sign closed only the door before this one."}
	s.pages["/rooms/?sort=age"] = &page{title: "Rooms by age", text: "Closed by a wildcard.", closed: true}
	return s
}
