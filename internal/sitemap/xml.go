package sitemap

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// maxDepth is how deep names are remembered to be matched with end tags;
// below it elements are only counted.
const maxDepth = 32

// document is the state of an XML parse.
type document struct {
	prefix string // of the root's name; elements of the format carry it too
	depth  int    // open elements
	names  [maxDepth]uint32

	entry      int // depth of the open url, sitemap, item or entry element, 0 if none
	index      bool
	field      field
	fieldDepth int
	text       []byte // of the open field
	tooLong    bool

	loc, guid, mod []byte
}

// field is what the text now read is for.
type field uint8

const (
	noField field = iota
	locField
	guidField
	modField
)

func (p *parser) parseXML() error {
	w := &p.win
	for {
		// Text, up to the next tag.
		n, ok := w.find("<")
		switch {
		case !ok && w.full(): // longer than a window: no field is
			p.xml.tooLong = true
			w.pos = w.end
			continue
		case !ok:
			w.pos = w.end
			return w.eof(p.openName())
		}
		if p.xml.collecting() {
			p.xml.add(w.bytes()[:n-1], true)
		}
		w.pos += n - 1
		if !w.need(2) {
			return w.eof("a tag")
		}
		var err error
		switch w.buf[w.pos+1] {
		case '!':
			err = p.declaration()
		case '?':
			if !w.skipPast("?>") {
				err = w.eof("a processing instruction")
			}
		default:
			err = p.tag()
		}
		if err != nil {
			return err
		}
	}
}

func (p *parser) openName() string {
	if p.xml.depth == 0 {
		return "the prolog"
	}
	return "the root element"
}

// declaration handles "<!": a comment, a CDATA section or a doctype.
func (p *parser) declaration() error {
	w := &p.win
	w.need(len("<!DOCTYPE html>"))
	switch head := w.bytes(); {
	case bytes.HasPrefix(head, []byte("<!--")):
		w.pos += 4
		if !w.skipPast("-->") {
			return w.eof("a comment")
		}
	case bytes.HasPrefix(head, []byte("<![CDATA[")):
		w.pos += 9
		n, ok := w.find("]]>")
		if ok {
			if p.xml.collecting() {
				p.xml.add(w.bytes()[:n-3], false)
			}
			w.pos += n
			return nil
		}
		p.xml.tooLong = true
		if !w.skipPast("]]>") {
			return w.eof("a CDATA section")
		}
	case p.xml.depth == 0 && len(head) >= 14 && strings.EqualFold(string(head[:14]), "<!DOCTYPE html"):
		return fmt.Errorf("%w: an HTML page", ErrNotSitemap)
	default:
		return p.doctype()
	}
	return nil
}

// doctype skips a document type, internal subset and all.
func (p *parser) doctype() error {
	w := &p.win
	open, quote := 0, byte(0)
	for ; w.need(1); w.pos++ {
		switch c := w.at(); {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '<':
			open++
		case c == '>':
			if open--; open == 0 {
				w.pos++
				return nil
			}
		}
	}
	return w.eof("a document type")
}

// tag handles a start or end tag at the window's position.
func (p *parser) tag() error {
	w := &p.win
	n := tagEnd(w.bytes())
	for n < 0 {
		if w.full() {
			return w.fault("a tag longer than %d bytes", len(w.buf))
		}
		if !w.fill() {
			return w.eof("a tag")
		}
		n = tagEnd(w.bytes())
	}
	raw := w.bytes()[1 : n-1] // without the angle brackets
	if len(raw) > 0 && raw[0] == '/' {
		err := p.endTag(nameOf(raw[1:]))
		w.pos += n
		return err
	}
	name := nameOf(raw)
	if len(name) == 0 {
		p.note(w.fault("a less-than sign that starts no tag"))
		w.pos++
		return nil
	}
	err := p.startTag(name, raw)
	if err == nil && raw[len(raw)-1] == '/' {
		err = p.endTag(name)
	}
	w.pos += n
	return err
}

// tagEnd finds the end of the tag b starts with, or -1.
func tagEnd(b []byte) int {
	gt := bytes.IndexByte(b, '>')
	if gt < 0 {
		return -1
	}
	if bytes.IndexByte(b[:gt], '"') < 0 && bytes.IndexByte(b[:gt], '\'') < 0 {
		return gt + 1
	}
	quote := byte(0)
	for i, c := range b {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return -1
}

func (p *parser) startTag(name, raw []byte) error {
	d := &p.xml
	prefix, local := splitName(name)
	if d.depth < maxDepth {
		d.names[d.depth] = hash(name)
	}
	d.depth++
	switch {
	case d.depth == 1:
		return p.root(prefix, local, name)
	case d.entry == 0:
		if string(prefix) == d.prefix && p.isEntry(local, d.depth) {
			d.entry, d.index = d.depth, string(local) == "sitemap"
			d.loc, d.guid, d.mod = d.loc[:0], d.guid[:0], d.mod[:0]
		}
	case d.depth == d.entry+1:
		return p.child(prefix, local, raw)
	}
	return nil
}

func (p *parser) root(prefix, local, name []byte) error {
	p.xml.prefix = string(prefix)
	switch string(local) {
	case "urlset":
		p.info.Format = URLSet
	case "sitemapindex":
		p.info.Format = Index
	case "rss":
		p.info.Format = RSS
	case "RDF": // RSS 1.0: the root alone has the prefix
		p.info.Format, p.xml.prefix = RSS, ""
	case "feed":
		p.info.Format = Atom
	default:
		return fmt.Errorf("%w: its root element is %.40q", ErrNotSitemap, name)
	}
	return nil
}

func (p *parser) isEntry(local []byte, depth int) bool {
	switch p.info.Format {
	case URLSet, Index: // some sites mix the two
		return depth == 2 && (string(local) == "url" || string(local) == "sitemap")
	case RSS:
		return depth <= 3 && string(local) == "item"
	case Atom:
		return depth == 2 && string(local) == "entry"
	}
	return false
}

// child handles a start tag directly inside an entry.
func (p *parser) child(prefix, local, raw []byte) error {
	d := &p.xml
	own := string(prefix) == d.prefix
	f := noField
	switch l := string(local); p.info.Format {
	case URLSet, Index:
		switch {
		case own && l == "loc":
			f = locField
		case own && l == "lastmod":
			f = modField
		case !own && l == "link": // xhtml:link; extensions such as image:loc are not ours
			return p.alternate(raw)
		}
	case RSS:
		switch {
		case own && l == "link":
			f = locField
		case own && l == "guid":
			if v, _ := attribute(raw, "isPermaLink"); string(v) != "false" {
				f = guidField
			}
		case own && l == "pubDate", !own && l == "date": // dc:date
			f = modField
		}
	case Atom:
		switch {
		case own && l == "link":
			rel, has := attribute(raw, "rel")
			if href, ok := attribute(raw, "href"); ok && (!has || string(rel) == "alternate") && len(d.loc) == 0 && len(href) <= maxLoc {
				d.loc = appendUnescaped(d.loc, href)
			}
		case own && l == "updated", own && l == "published" && len(d.mod) == 0:
			f = modField
		}
	}
	if f != noField {
		d.field, d.fieldDepth, d.text, d.tooLong = f, d.depth, d.text[:0], false
	}
	return nil
}

func (p *parser) alternate(raw []byte) error {
	href, ok := attribute(raw, "href")
	if rel, _ := attribute(raw, "rel"); !ok || string(rel) != "alternate" {
		return nil
	}
	loc := cleanLoc(appendUnescaped(nil, href))
	if loc == "" || len(href) > maxLoc {
		p.info.Skipped++
		return nil
	}
	lang, _ := attribute(raw, "hreflang")
	return p.emit(Entry{Loc: loc, Alternate: true, Lang: strings.ToValidUTF8(string(lang[:min(len(lang), 35)]), "\ufffd")})
}

func (p *parser) endTag(name []byte) error {
	d := &p.xml
	to := d.depth - 1
	if to < 0 {
		p.note(p.win.fault("</%.40s> closes nothing", name))
		return nil
	}
	if to < maxDepth && d.names[to] != hash(name) {
		p.note(p.win.fault("</%.40s> does not match the open element", name))
		for to--; to >= 0 && d.names[to] != hash(name); to-- {
		}
		if to < 0 {
			return nil // it closes nothing that is open
		}
	}
	for d.depth > to {
		if err := p.close(); err != nil {
			return err
		}
	}
	if d.depth == 0 {
		return errStop // the rest, if any, is rubbish
	}
	return nil
}

// close ends the innermost element.
func (p *parser) close() error {
	d := &p.xml
	depth := d.depth
	d.depth--
	switch {
	case d.field != noField && depth == d.fieldDepth:
		if d.tooLong {
			d.text = d.text[:0]
		}
		switch d.field {
		case locField:
			d.loc = append(d.loc[:0], d.text...)
		case guidField:
			d.guid = append(d.guid[:0], d.text...)
		case modField:
			d.mod = append(d.mod[:0], d.text...)
		}
		d.field = noField
	case d.entry != 0 && depth == d.entry:
		d.entry = 0
		return p.finishEntry()
	}
	return nil
}

func (p *parser) finishEntry() error {
	d := &p.xml
	loc := cleanLoc(d.loc)
	if loc == "" {
		loc = cleanLoc(d.guid)
	}
	if loc == "" {
		p.info.Skipped++
		return nil
	}
	var mod time.Time
	if len(d.mod) > 0 {
		mod = parseTime(d.mod)
	}
	return p.emit(Entry{Loc: loc, LastMod: mod, Index: d.index})
}

// collecting reports whether text at this place belongs to a field.
func (d *document) collecting() bool { return d.field != noField && d.depth == d.fieldDepth }

func (d *document) add(text []byte, escaped bool) {
	if len(d.text)+len(text) > maxLoc {
		d.tooLong = true
		return
	}
	if escaped {
		d.text = appendUnescaped(d.text, text)
		return
	}
	d.text = append(d.text, text...)
}
