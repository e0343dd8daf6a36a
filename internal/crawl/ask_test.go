package crawl

import (
	"testing"
	"time"

	"tiptoe/internal/frontier"
	"tiptoe/internal/outcome"
	"tiptoe/internal/robots"
	"tiptoe/internal/weburl"
)

func Test_a_redirect_to_a_page_that_was_fetched_does_not_turn_it_into_a_refusal(t *testing.T) {
	in(t, func(t *testing.T, w *web) {
		seed := home + "shut/door" // a seed is fetched although a pattern excludes it
		w.sites[seed] = page(`<a href=/back>`)
		w.sites[home+"back"] = func(*hit) reply {
			return reply{status: 302, header: map[string]string{"Location": "/shut/door"}}
		}
		spec := plainSpec(seed)
		spec.Exclude = []string{"/shut/"}
		if _, err := w.crawl(spec); err != nil {
			t.Fatal(err)
		}
		w.want(home+"back", outcome.Redirect)
		w.want(seed, outcome.OK)
	})
}

func Test_questions_are_judged_by_the_rules_of_the_crawl(t *testing.T) {
	s := plainSpec(home)
	s.Scope, s.UserAgent, s.RobotsPolicy = "host", "tiptoe/1.0", "rfc9309"
	if v, err := s.JudgeScope(weburl.FromCanonical("https://b.example/"), 1, time.Now()); err != nil || v.OK || v.Rule != "outside host a.example" {
		t.Errorf("%+v, %v", v, err)
	}
	file := robots.Parse([]byte("User-agent: tiptoe\nDisallow: /shut\nCrawl-delay: 3\n"))
	c := &frontier.RobotsCopy{Status: 200, File: file}
	if d, known, err := s.JudgeRobots(c, home+"shut/x"); err != nil || !known || d.Allowed || d.Line != 2 || d.CrawlDelay != 3*time.Second {
		t.Errorf("%+v, %v, %v", d, known, err)
	}
	if _, known, err := s.JudgeRobots(nil, home); err != nil || known {
		t.Errorf("without a copy nothing is known: %v, %v", known, err)
	}
	s.RobotsRules = &RulesFile{Name: "mine", Text: "allow * ^/shut\n"}
	if d, known, err := s.JudgeRobots(c, home+"shut/x"); err != nil || !known || !d.Allowed {
		t.Errorf("the operator's rule was not heard: %+v, %v, %v", d, known, err)
	}
	s.IgnoreRobots, s.RobotsRules = true, nil
	if d, known, err := s.JudgeRobots(nil, home); err != nil || !known || !d.Allowed || !d.Ignored {
		t.Errorf("%+v, %v, %v", d, known, err)
	}
}
