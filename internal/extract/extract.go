// Package extract answers: what does this document link to, and what does it
// say about itself?
//
// Bytes go in, values come out: no network, no disk, no clock, no goroutine.
// A Scanner makes one pass over the body with its own tokenizer, which follows
// the HTML standard where it matters for links (raw text, script escapes,
// comments, foreign content, attribute quoting, character references) and
// builds no tree. So a page nested 100,000 deep costs what its bytes cost, and
// a link is not lost because an ancestor was malformed.
//
// What counts as a link: a[href] and area[href] (SVG's a too), link[href]
// with rel next, prev, alternate or canonical, iframe[src] and frame[src], and
// meta refresh; LinkHeader adds the HTTP Link header. Nothing is judged here:
// fragments, mailto and nofollow links are delivered with their flags, and the
// caller decides.
//
// What is not a link: anything inside a template (its content is inert),
// except a declarative shadow root, which browsers show; the text of script,
// style, textarea, title, xmp, iframe, noembed and noframes; comments. Scripting
// is off for a crawler, so noscript content is ordinary content.
//
// Guarantees:
//   - Every Ref, title and other value is valid UTF-8, whatever the bytes were.
//   - Time and memory are linear in the body; the bounds are named constants.
//   - The base URL is the document's first base[href], which also governs the
//     links before it: links are handed out only after the whole scan.
//   - Links come in document order. Page.Truncated says when MaxLinks cut them.
//   - No allocation on an ordinary page beyond the metadata strings, once a
//     Scanner has been warmed up.
//
// Documents are HTML, or XML (XHTML, Atom, SVG: the same rules, but CDATA and
// empty-element tags are honoured), by Content-Type; a missing or meaningless
// type is sniffed. Every other type, text/plain and JSON and PDF included, has
// no links: Page.Format says so.
//
// Where the answers differ from a browser's tree on malformed input is listed,
// with examples that are tested, in docs/EXTRACT.md.
package extract

import "bytes"

const (
	// MaxLinks bounds the links of one page. Pages above it are almost
	// always generated; the rest of such a page still yields metadata.
	MaxLinks = 50_000
	// MaxRef bounds one reference, before decoding. Servers commonly refuse
	// request lines above 8 KiB; what is longer here is data: in disguise.
	MaxRef = 16 << 10

	maxTitle       = 512
	maxDescription = 1024
	maxLang        = 35 // RFC 5646 section 4.4.1
	maxRawText     = 16 << 10

	// Buffers above these sizes are not kept for the next page.
	keepArena = 256 << 10
	keepLinks = 8192
)

// Scanner reads documents, one after the other, and reuses its memory. The
// zero value is ready. It is not safe for concurrent use.
type Scanner struct {
	// Agent is our product token. <meta name="Agent" content="..."> is
	// obeyed as <meta name="robots"> is.
	Agent string

	page  Page
	arena []byte // decoded references
	attrs attrs

	xml     bool
	inert   int // open templates whose content is inert
	shadow  int // open templates that are shadow roots
	foreign foreignStack

	base, title, description, lang   []byte // raw, decoded at the end
	hasBase, hasTitle, hasDesc, hasL bool
	canonical                        int // index into links, or -1
	metaCharset                      []byte
	decoder                          decoder
}

// Scan reads a whole document. contentType is the Content-Type header's
// value, possibly empty. The result, and the references in it, are valid until
// the next Scan and as long as body is not overwritten; its strings are
// copies and may be kept.
func (s *Scanner) Scan(body []byte, contentType string) *Page {
	s.reset()
	body, ok := s.open(body, contentType)
	if !ok {
		return &s.page
	}
	s.run(body)
	if again := s.settleCharset(body); again != nil {
		s.restart()
		s.run(again)
	}
	s.finish()
	return &s.page
}

func (s *Scanner) reset() {
	links := s.page.Links[:0]
	if cap(links) > keepLinks {
		links = nil
	}
	arena := s.arena[:0]
	if cap(arena) > keepArena {
		arena = nil
	}
	stack := s.foreign.open[:0]
	*s = Scanner{Agent: s.Agent, arena: arena, canonical: -1}
	s.page.Links = links
	s.foreign.open = stack
}

// restart forgets a scan made under the wrong encoding, but not the right one.
func (s *Scanner) restart() {
	d, format, xml := s.decoder, s.page.Format, s.xml
	s.reset()
	s.decoder, s.page.Format, s.xml = d, format, xml
	s.page.Charset = d.name
}

// run is the data state: text until the next tag, comment or declaration.
func (s *Scanner) run(b []byte) {
	i := 0
	for {
		k := bytes.IndexByte(b[i:], '<')
		if k < 0 {
			return
		}
		i += k + 1
		if i == len(b) {
			return
		}
		switch c := b[i]; {
		case isLetter(c):
			i = s.startTag(b, i)
		case c == '/':
			i = s.endTag(b, i+1)
		case c == '!':
			i = s.declaration(b, i+1)
		case c == '?':
			i = s.instruction(b, i+1)
		}
	}
}

// finish decodes what was collected. It runs after the scan because the
// encoding may be named after the first link.
func (s *Scanner) finish() {
	p := &s.page
	kept := p.Links[:0]
	for i := range p.Links {
		l := p.Links[i]
		if l.Kind == Refresh {
			l.Ref = refreshTarget(s.reference(l.Ref, false))
			if len(l.Ref) == 0 || p.Refresh != "" {
				continue
			}
			p.Refresh = string(l.Ref)
		} else {
			l.Ref = s.reference(l.Ref, true)
		}
		if len(l.Lang) > 0 {
			l.Lang = s.langTag(l.Lang)
		}
		if i == s.canonical {
			p.Canonical = string(l.Ref)
		}
		kept = append(kept, l)
	}
	clear(p.Links[len(kept):])
	p.Links = kept
	if s.hasBase {
		p.Base = string(s.reference(s.base, true))
	}
	if s.hasTitle {
		p.Title = s.titleText()
	}
	if s.hasDesc {
		p.Description = s.text(s.description, maxDescription)
	}
	if s.hasL {
		p.Lang = s.text(s.lang, maxLang)
	}
}
