package extract

import "strings"

// LinkHeader calls fn for each link of the values of a response's Link
// headers (RFC 8288) whose relation is next, prev, alternate or canonical,
// until fn returns false. References are resolved against the final URL, not
// against a base element. A link with an anchor parameter speaks about
// another resource and is passed over; malformed ones end their value.
func LinkHeader(values []string, fn func(Link) bool) {
	n := 0
	for _, v := range values {
		for {
			link, ok, rest := nextHeaderLink(v)
			if ok {
				if n++; n > maxHeaderLinks || !fn(link) {
					return
				}
			}
			if rest == "" {
				break
			}
			v = rest
		}
	}
}

// maxHeaderLinks bounds what one response may add; headers are capped by
// fetch, this is the second bolt.
const maxHeaderLinks = 1000

// nextHeaderLink reads the first link-value of v. rest is empty at the end,
// and where the value stops making sense.
func nextHeaderLink(v string) (l Link, ok bool, rest string) {
	v = strings.TrimLeft(v, " \t,")
	if v == "" || v[0] != '<' {
		return Link{}, false, ""
	}
	ref, v, found := strings.Cut(v[1:], ">")
	if !found {
		return Link{}, false, ""
	}
	var rel Rel
	var lang, typ string
	hasRel, anchored := false, false
	for {
		v = strings.TrimLeft(v, " \t")
		if v == "" || v[0] != ';' {
			break
		}
		var name, value string
		name, value, v = nextParam(v[1:])
		switch {
		case equalFold(name, "rel") && !hasRel: // the first counts
			rel, hasRel = parseRel([]byte(value)), true
		case equalFold(name, "hreflang") && lang == "":
			lang = value
		case equalFold(name, "type") && typ == "":
			typ = value
		case equalFold(name, "anchor"):
			anchored = true
		}
	}
	if v != "" && v[0] == ',' {
		rest = v[1:]
	}
	ref = strings.ToValidUTF8(strings.Trim(ref, " \t"), "\ufffd")
	if ref == "" || len(ref) > MaxRef || anchored || rel&linkRels == 0 || rel&stylesheet != 0 {
		return Link{}, false, rest
	}
	l = Link{Ref: []byte(ref), Rel: rel, Kind: Header}
	if rel&RelAlternate != 0 {
		l.Rel |= relOfType([]byte(typ))
		if lang != "" {
			l.Lang = []byte(tidy(strings.ToValidUTF8(lang, "\ufffd"), maxLang))
		}
	}
	return l, true, rest
}

// nextParam reads "name", "name=token" or `name="quoted"` after a semicolon.
func nextParam(v string) (name, value, rest string) {
	v = strings.TrimLeft(v, " \t")
	i := strings.IndexAny(v, "=;, \t")
	if i < 0 {
		return v, "", ""
	}
	name, v = v[:i], strings.TrimLeft(v[i:], " \t")
	if v == "" || v[0] != '=' {
		return name, "", v
	}
	v = strings.TrimLeft(v[1:], " \t")
	if v == "" || v[0] != '"' {
		i := strings.IndexAny(v, ";, \t")
		if i < 0 {
			return name, v, ""
		}
		return name, v[:i], v[i:]
	}
	var out strings.Builder
	for i := 1; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			return name, out.String(), v[i+1:]
		case c == '\\' && i+1 < len(v):
			i++
			out.WriteByte(v[i])
		default:
			out.WriteByte(c)
		}
	}
	return name, out.String(), ""
}
