package app

import (
	"context"
	"fmt"
	"net/http"

	"tiptoe/internal/config"
	"tiptoe/internal/fetch"
	"tiptoe/internal/robots"
	"tiptoe/internal/weburl"
)

// CheckWeb reports what is wrong with the settings of the client, without
// touching anything.
func CheckWeb(w config.Web) error {
	c, err := newClient(Settings{Web: w, Machine: config.Machine{Process: config.Process{Workers: 1, BodyBytes: 1 << 20}}})
	if err != nil {
		return err
	}
	c.Close()
	return nil
}

// FetchRobots reads the robots.txt of a URL's origin, following its redirects.
func FetchRobots(ctx context.Context, web config.Web, u weburl.URL, agent string, policy robots.Policy) (*robots.Matcher, error) {
	client, err := newClient(Settings{Web: web, Machine: config.Machine{Process: config.Process{Workers: 4, BodyBytes: 1 << 20}}})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	at := weburl.FromCanonical(u.Origin() + "/robots.txt")
	for range 6 {
		resp, err := client.Do(ctx, &fetch.Request{URL: at, Header: http.Header{"User-Agent": {web.UserAgent}}, AllowPrivate: true})
		if err != nil {
			return nil, fmt.Errorf("fetch %s: %w", at, err)
		}
		body, err := fetch.ReadAll(resp, nil)
		resp.Close()
		if err != nil {
			return nil, fmt.Errorf("fetch %s: %w", at, err)
		}
		if loc := resp.Header.Get("Location"); resp.Status >= 300 && resp.Status < 400 && loc != "" {
			if at, err = weburl.NewBase(at).Resolve(loc); err != nil {
				return nil, fmt.Errorf("robots.txt redirects to %q: %w", loc, err)
			}
			continue
		}
		switch v := robots.Availability(resp.Status, false, policy); v.Access {
		case robots.UseRules:
			return robots.Parse(body).For(agent, policy), nil
		case robots.AllowAll:
			return robots.Fixed(true, fmt.Sprintf("no robots.txt (HTTP %d)", resp.Status)), nil
		default:
			return robots.Fixed(false, fmt.Sprintf("robots.txt unreachable (HTTP %d)", resp.Status)), nil
		}
	}
	return robots.Fixed(true, "robots.txt redirects too often"), nil
}
