package hostile

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const sitemapNS = `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`

var sitemapLoop = Case{
	Name: "sitemap-loop", What: "a sitemap index that lists itself, under two addresses",
	path: "/sitemap.xml",
	serve: func(s *Server) {
		origin := strings.TrimSuffix(s.URL, s.page)
		s.web(apart(s.page, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprintf(w, "<?xml version=\"1.0\"?>\n<sitemapindex %s><sitemap><loc>%s/sitemap.xml</loc></sitemap><sitemap><loc>%[2]s/sitemap.xml?again</loc></sitemap></sitemapindex>", sitemapNS, origin)
		}))
	},
}

var sitemapBomb = Case{
	Name: "sitemap-bomb", What: "a sitemap.xml.gz that decodes to Count MiB of white space inside one element",
	Defaults: Options{Count: 64},
	path:     "/sitemap.xml.gz",
	serve: func(s *Server) {
		spaces := []byte(strings.Repeat(" ", 1<<20))
		s.web(apart(s.page, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/gzip")
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, "<?xml version=\"1.0\"?>\n<urlset %s><url><loc>", sitemapNS)
			for range s.options.Count {
				if _, err := z.Write(spaces); err != nil {
					return
				}
			}
			z.Close()
		}))
	},
}

var sitemapEntities = Case{
	Name: "sitemap-entities", What: "a sitemap of nested XML entities that would expand to 10^Count characters",
	Defaults: Options{Count: 12},
	path:     "/sitemap.xml",
	serve: func(s *Server) {
		s.web(apart(s.page, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			io.WriteString(w, "<?xml version=\"1.0\"?>\n<!DOCTYPE urlset [<!ENTITY e0 \"x\">")
			for i := range s.options.Count {
				fmt.Fprintf(w, "<!ENTITY e%d \"%s\">", i+1, strings.Repeat(fmt.Sprintf("&e%d;", i), 10))
			}
			fmt.Fprintf(w, "]>\n<urlset %s><url><loc>&e%d;</loc></url></urlset>", sitemapNS, s.options.Count)
		}))
	},
}
