package main

import (
	"encoding/json"
	"net/url"
	"slices"

	"tiptoe/internal/config"
	"tiptoe/internal/crawl"
)

// client is how a crawl's requests are sent, kept with the crawl so that a
// resume sends them in the same way. Secrets are not kept, only that there
// were some.
type client struct {
	Proxy        string   `json:"proxy,omitempty"`
	SecretProxy  bool     `json:"secret_proxy,omitempty"`
	Resolve      []string `json:"resolve,omitempty"`
	Cookies      bool     `json:"cookies,omitempty"`
	Insecure     bool     `json:"insecure,omitempty"`
	HTTP1        bool     `json:"http1,omitempty"`
	AllowPrivate bool     `json:"allow_private,omitempty"`
	Group        string   `json:"group,omitempty"`  // what is paced together
	Groups       []string `json:"groups,omitempty"` // the operator's own
	Logins       []string `json:"logins,omitempty"` // origins that had credentials
}

// remember puts the client's settings into the crawl's.
func remember(s *crawl.Spec, w *config.Web) error {
	k := client{Proxy: w.Proxy, Resolve: w.Resolve, Cookies: w.Cookies, Insecure: w.Insecure, HTTP1: !w.HTTP2, AllowPrivate: w.AllowPrivate,
		Group: w.Group, Groups: w.Groups}
	if u, err := url.Parse(w.Proxy); err != nil || u.User != nil {
		k.Proxy, k.SecretProxy = "", true
	}
	for origin := range s.HostHeaders {
		k.Logins = append(k.Logins, origin)
	}
	slices.Sort(k.Logins)
	var err error
	s.Client, err = json.Marshal(k)
	return err
}
