package config

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"tiptoe/internal/limits"
)

// parsed reads caps and service from arguments and perhaps a config file, as
// the program does.
func parsed(t *testing.T, file string, args ...string) (Service, error) {
	t.Helper()
	var s Service
	opts := []kong.Option{kong.Exit(func(int) { t.Fatal("exit") })}
	if file != "" {
		f, err := ReadFile(written(t, "c.yaml", file), true)
		if err != nil {
			return s, err
		}
		opts = append(opts, kong.Resolvers(f))
	}
	p, err := kong.New(&s, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Parse(args); err != nil {
		return s, err
	}
	return s, s.Check()
}

func Test_SAF_1_2_3_without_a_word_the_caps_are_those_of_the_specification(t *testing.T) {
	s, err := parsed(t, "")
	if err != nil {
		t.Fatal(err)
	}
	safety, plans, err := s.Limits()
	if err != nil || safety != (limits.Safety{MaxPages: 50, MaxCrawls: 1, Timeout: time.Minute}) || !reflect.DeepEqual(plans, limits.ShippedPlans()) {
		t.Errorf("%+v, %+v, %v", safety, plans, err)
	}
	if s.JobFailureThreshold != 20 || s.CancelAfter429s != 0 || s.Listen != "127.0.0.1:8080" {
		t.Errorf("%+v", s)
	}
}

func Test_every_cap_is_a_flag_a_variable_and_a_key_with_one_meaning(t *testing.T) {
	for _, c := range []struct {
		flag string
		envs []string
		read func(Service) int64
	}{
		{"max-pages-per-crawl", []string{"MAX_PAGES_PER_CRAWL", "TIPTOE_MAX_PAGES_PER_CRAWL"}, func(s Service) int64 { l, _, _ := s.Limits(); return l.MaxPages }},
		{"max-concurrent-crawls", []string{"MAX_CONCURRENT_CRAWLS", "TIPTOE_MAX_CONCURRENT_CRAWLS"}, func(s Service) int64 { l, _, _ := s.Limits(); return int64(l.MaxCrawls) }},
		{"crawl-timeout-ms", []string{"CRAWL_TIMEOUT_MS", "TIPTOE_CRAWL_TIMEOUT_MS"}, func(s Service) int64 { l, _, _ := s.Limits(); return l.Timeout.Milliseconds() }},
		{"job-failure-threshold", []string{"TIPTOE_JOB_FAILURE_THRESHOLD", "BBB_JOB_FAILURE_THRESHOLD"}, func(s Service) int64 { return int64(s.JobFailureThreshold) }},
		{"cancel-after-429s", []string{"TIPTOE_CANCEL_AFTER_429S"}, func(s Service) int64 { return int64(s.CancelAfter429s) }},
	} {
		check := func(how string, s Service, err error, want int64) {
			t.Helper()
			if err != nil || c.read(s) != want {
				t.Errorf("%s by %s: %d, %v", c.flag, how, c.read(s), err)
			}
		}
		s, err := parsed(t, "", "--"+c.flag+"=7")
		check("flag", s, err, 7)
		s, err = parsed(t, strings.ReplaceAll(c.flag, "-", "_")+": 8\n")
		check("key", s, err, 8)
		for _, env := range c.envs {
			t.Run(env, func(t *testing.T) {
				t.Setenv(env, "9")
				s, err := parsed(t, c.flag+": 8\n")
				check(env, s, err, 9) // nearer than the file
				s, err = parsed(t, "", "--"+c.flag+"=7")
				check("flag over "+env, s, err, 7)
				t.Setenv(env, "0.10") // once parsed as an integer and silently switched off
				if _, err := parsed(t, ""); err == nil || !strings.Contains(err.Error(), c.flag) {
					t.Errorf("%s=0.10: %v", env, err)
				}
			})
		}
		if _, err := parsed(t, "", "--"+c.flag+"=-1"); err == nil || !strings.Contains(err.Error(), "--"+c.flag) || !strings.Contains(err.Error(), "0 means") {
			t.Errorf("%s: %v", c.flag, err)
		}
	}
}

func Test_a_timeout_too_long_to_be_a_duration_is_refused_and_does_not_become_none(t *testing.T) {
	for _, ms := range []int64{math.MaxInt64, math.MaxInt64/1_000_000 + 1} {
		c := Caps{CrawlTimeoutMS: ms}
		if s, _, err := c.Limits(); err == nil || !strings.Contains(err.Error(), "--crawl-timeout-ms") {
			t.Errorf("%d ms: %s, %v", ms, s.Timeout, err)
		}
	}
}

func Test_a_plan_lies_over_the_shipped_one_of_its_name_and_a_new_one_has_no_limits(t *testing.T) {
	c := Caps{Plans: []string{"free=pages:7,monthly_pages: 70", "", "team=crawls:3,schedules:2,per-host:1", "empty="}}
	_, plans, err := c.Limits()
	if err != nil {
		t.Fatal(err)
	}
	want := limits.ShippedPlans()
	want[0].Pages, want[0].Quota = 7, 70
	want = append(want, limits.Plan{Name: "team", Crawls: 3, Schedules: 2, PerHost: 1}, limits.Plan{Name: "empty"})
	if !reflect.DeepEqual(plans, want) {
		t.Errorf("%+v", plans)
	}
	if limits.ShippedPlans()[0].Pages != 50 {
		t.Error("the shipped plans were changed")
	}
}

func Test_plans_in_the_config_file_are_a_mapping(t *testing.T) {
	s, err := parsed(t, "plans:\n  team: {pages: 500, crawls: 2, monthly-pages: 10000}\n  free:\n    per_host: 2\n")
	if err != nil {
		t.Fatal(err)
	}
	_, plans, err := s.Limits()
	if err != nil || plans[0].PerHost != 2 || plans[4] != (limits.Plan{Name: "team", Pages: 500, Crawls: 2, Quota: 10000}) {
		t.Errorf("%+v, %v", plans, err)
	}
}

func Test_plans_that_make_no_sense_are_refused_with_what_is_wrong(t *testing.T) {
	for text, want := range map[string]string{
		"team":                     `--plans: "team" is not a plan; write something like team=pages:500`,
		"=pages:1":                 `is not a plan`,
		"a b=pages:1":              `is not a plan`,
		"a/b=pages:1":              `is not a plan`,
		"team=pages":               `--plans: team: pages: "" is not a whole number`,
		"team=pages:x":             `--plans: team: pages: "x" is not a whole number`,
		"team=pages:0.10":          `--plans: team: pages: "0.10" is not a whole number`,
		"team=pages:-1":            `--plans: team: pages: "-1" is not a whole number; 0 means no limit`,
		"team=pages:9999999999999": `is not a whole number`,
		"team=speed:1":             `--plans: team: "speed" is not a limit of a plan; the limits are pages, crawls, per-host, schedules, monthly-pages`,
	} {
		if _, _, err := (&Caps{Plans: []string{text}}).Limits(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"plans: all\n":                               ":1: key \"plans\": names with limits are expected",
		"plans: [free]\n":                            ":1: key \"plans\": names with limits are expected",
		"plans:\n  a: 5\n":                           ":2: key \"plans.a\": limits are expected",
		"plans:\n  a: {pages: [1]}\n":                ":2: key \"plans.a.pages\": a number is expected",
		"plans:\n  a: {pages: many}\n":               ":2: key \"plans.a.pages\"",
		"plans:\n  a: {speed: 1}\n":                  ":2: key \"plans.a.speed\"",
		"plans:\n  a: {pages: 1}\n  a: {pages: 2}\n": ":3: key \"plans\": plan \"a\" is there twice",
	} {
		if _, err := parsed(t, text); err == nil || !strings.Contains(err.Error(), "c.yaml"+want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func Test_settings_of_the_service_that_cannot_work_are_refused_by_their_name(t *testing.T) {
	for flag, value := range map[string]string{"listen": "8080", "api-rate": "0", "api-burst": "0", "api-requests": "0", "api-streams": "0", "max-pages-per-crawl": "-1", "plans": "x"} {
		if _, err := parsed(t, "", "--"+flag+"="+value); err == nil || !strings.Contains(err.Error(), "--"+flag) {
			t.Errorf("--%s=%s: %v", flag, value, err)
		}
	}
}
