package robots

import "testing"

func TestProductTokenIsTheNameRobotsTxtUses(t *testing.T) {
	tests := map[string]string{
		"tiptoe/1.0 (+https://tiptoe.example)": "tiptoe",
		"tiptoe":                               "tiptoe",
		"  tiptoe/1.0":                         "tiptoe",
		"Tip-Toe_bot/1.0":                      "Tip-Toe_bot",
		"tiptoe (compatible; other/1.0)":       "tiptoe",
		"Mozilla/5.0 (compatible; tiptoe/1.0; +https://x)": "tiptoe",
		"mozilla/5.0 (Compatible;tiptoe/1.0)":              "tiptoe",
		"Mozilla/5.0 (X11; Linux x86_64)":                  "Mozilla",
		"Mozilla/5.0 (compatible; )":                       "Mozilla",
		"Mozilla/5.0 (compatible;":                         "Mozilla",
		"archive.org_bot":                                  "archive.org_bot",
		"MJ12bot/v1.4.8":                                   "MJ12bot",
		"":                                                 "",
		"/1.0":                                             "",
		"(+https://x)":                                     "",
		"ñandú/1.0":                                        "",
		"*":                                                "",
		"Mozilla/5.0 \u0130\u0130\u0130\u0130\u0130(compatible;": "Mozilla",
	}
	for ua, want := range tests {
		if got := ProductToken(ua); got != want {
			t.Errorf("ProductToken(%q) = %q, want %q", ua, got, want)
		}
	}
}

func TestPolicyDecidesWhichGroupIsOurs(t *testing.T) {
	const file = "User-agent: tiptoebot\nDisallow: /bot\n\nUser-agent: tip\nDisallow: /tip\n\n" +
		"User-agent: *\nDisallow: /star\n\nUser-agent: tiptoebot\nDisallow: /again\n"
	tests := []struct {
		name, robots, agent string
		policy              Policy
		want                string
	}{
		{"rfc9309 wants the exact name", file, "tiptoe", RFC9309, "*"},
		{"rfc9309 finds the exact name", file, "TipToeBot/2", RFC9309, "tiptoebot"},
		{"open prefers the exact name", file, "tip", Open, "tip"},
		{"open takes a name that contains ours, the longest", file, "tiptoe", Open, "tiptoebot"},
		{"open takes a name that ours contains", "User-agent: tip\nDisallow: /\nUser-agent: *\nDisallow: /x\n", "tiptoe", Open, "tip"},
		{"open falls back to star", file, "crawler", Open, "*"},
		{"open never takes a nameless group for a part of ours", "User-agent:\nDisallow: /\n", "tiptoe", Open, ""},
		{"no name of our own leaves star", file, "", Open, "*"},
		{"nothing at all", "User-agent: other\nDisallow: /\n", "tiptoe", RFC9309, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Parse([]byte(tt.robots)).For(tt.agent, tt.policy).Agent(); got != tt.want {
				t.Errorf("got group %q, want %q", got, tt.want)
			}
		})
	}
	m := Parse([]byte(file)).For("tiptoe", Open)
	if m.Check("/bot").Allowed || m.Check("/again").Allowed || !m.Check("/tip").Allowed {
		t.Error("a partial match must merge all groups of the one name it chose, and no others")
	}
}

func TestPoliciesAreReadByNameAndOnlyByName(t *testing.T) {
	for _, p := range []Policy{RFC9309, Open} {
		if got, err := ParsePolicy(p.String()); err != nil || got != p {
			t.Errorf("ParsePolicy(%q) = %v, %v", p, got, err)
		}
	}
	if _, err := ParsePolicy("lenient"); err == nil {
		t.Error("an unknown policy was accepted")
	}
}
