package extract

// Page is what a document says. Strings are empty when it does not say.
type Page struct {
	Format  Format
	Charset string // canonical name of the encoding it was read with

	Title       string // of the first title element, clean and short
	Description string // meta name=description
	Lang        string // html lang
	Base        string // first base[href], as written: resolve it against the final URL, and every link against the result
	Canonical   string // first link rel=canonical, as written
	Refresh     string // target of the meta refresh that takes effect, as written

	Robots    Robots // meta robots, and meta with our product token
	Links     []Link // in document order; the canonical and refresh links are among them
	Truncated bool   // there were more than MaxLinks
}

// Format says how a document was read.
type Format uint8

const (
	Opaque Format = iota // not a document that carries links: nothing was read
	HTML
	XML
)

func (f Format) String() string {
	return [...]string{"opaque", "html", "xml"}[min(f, XML)]
}

// Link is one reference. Ref has its character references decoded, tabs,
// newlines and surrounding blanks removed, as URL parsing asks; it is still
// relative, may be a fragment or another scheme, and is empty only where an
// empty reference means the document itself (a and area).
type Link struct {
	Ref  []byte
	Lang []byte // hreflang of a rel=alternate link
	Rel  Rel
	Kind Kind
}

// Kind says where a link stood.
type Kind uint8

const (
	Anchor      Kind = iota // a
	Area                    // area
	LinkElement             // link
	IFrame                  // iframe
	Frame                   // frame
	Refresh                 // meta http-equiv=refresh
	Header                  // HTTP Link header
)

var kindNames = [...]string{"a", "area", "link", "iframe", "frame", "refresh", "header"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Rel is a set of link relations; those unknown to it are left out.
type Rel uint16

const (
	RelNoFollow Rel = 1 << iota
	RelUGC
	RelSponsored
	RelNext
	RelPrev
	RelAlternate
	RelCanonical
	RelFeed    // alternate, with the type of an RSS or Atom feed
	RelNotHTML // alternate, with a type that is neither HTML nor a feed (JSON, oEmbed)
	stylesheet // rel="alternate stylesheet" is no alternate page
)

// Has reports whether all of want is in r.
func (r Rel) Has(want Rel) bool { return r&want == want }

const linkRels = RelNext | RelPrev | RelAlternate | RelCanonical

// parseRel reads a rel attribute: blank-separated, and also comma-separated
// as many authors write it, because a missed nofollow is the worse mistake.
func parseRel(v []byte) Rel {
	var r Rel
	for i := 0; i < len(v); {
		for i < len(v) && (isSpace(v[i]) || v[i] == ',') {
			i++
		}
		start := i
		for i < len(v) && !isSpace(v[i]) && v[i] != ',' {
			i++
		}
		r |= relBit(v[start:i])
	}
	return r
}

func relBit(word []byte) Rel {
	switch len(word) {
	case 3:
		if equalFold(word, "ugc") {
			return RelUGC
		}
	case 4:
		if equalFold(word, "next") {
			return RelNext
		}
		if equalFold(word, "prev") {
			return RelPrev
		}
	case 8:
		if equalFold(word, "nofollow") {
			return RelNoFollow
		}
		if equalFold(word, "previous") {
			return RelPrev
		}
	case 9:
		if equalFold(word, "alternate") {
			return RelAlternate
		}
		if equalFold(word, "canonical") {
			return RelCanonical
		}
		if equalFold(word, "sponsored") {
			return RelSponsored
		}
	case 10:
		if equalFold(word, "stylesheet") {
			return stylesheet
		}
	}
	return 0
}

// relOfType says what an alternate's type attribute makes of it.
func relOfType(typ []byte) Rel {
	typ = essence(typ)
	switch {
	case len(typ) == 0, equalFold(typ, "text/html"), equalFold(typ, "application/xhtml+xml"):
		return 0
	case equalFold(typ, "application/rss+xml"), equalFold(typ, "application/atom+xml"),
		equalFold(typ, "application/rdf+xml"):
		return RelFeed
	}
	return RelNotHTML
}
