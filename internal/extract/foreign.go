package extract

// Inside SVG and MathML the tokenizer works differently: title, style and
// script are ordinary elements, CDATA sections exist, and link, base, meta
// and iframe are not HTML's. To know where that holds, the scanner keeps a
// stack, only while inside, of the few elements that change it: svg, math and
// the points at which HTML comes back (foreignObject, desc, title, mi and the
// like). HTML elements are not on it, which is the one approximation.
type foreignStack struct {
	open  []foreignElement
	count [numForeign]int32 // open elements by name, so that a stray end tag costs nothing
	html  bool              // an HTML element was opened since the last push or pop
}

// foreignElement is a name and two flags.
type foreignElement uint8

const (
	fSvg foreignElement = iota
	fMath
	fForeignObject
	fDesc
	fTitle
	fMi
	fMo
	fMn
	fMs
	fMtext
	fAnnotationXML
	fMglyph
	fMalignmark
	fA
	numForeign

	fNameMask foreignElement = 0x0f
	fInMath   foreignElement = 0x10 // in the MathML namespace; SVG otherwise
	fHoldHTML foreignElement = 0x20 // an integration point: its content is HTML
)

func foreignName(name uint64) (foreignElement, bool) {
	switch name {
	case nSvg:
		return fSvg, true
	case nMath:
		return fMath, true
	case nForeignObject:
		return fForeignObject, true
	case nDesc:
		return fDesc, true
	case nTitle:
		return fTitle, true
	case nMi:
		return fMi, true
	case nMo:
		return fMo, true
	case nMn:
		return fMn, true
	case nMs:
		return fMs, true
	case nMtext:
		return fMtext, true
	case nAnnotationXML:
		return fAnnotationXML, true
	case nMglyph:
		return fMglyph, true
	case nMalignmark:
		return fMalignmark, true
	case nA:
		return fA, true
	}
	return 0, false
}

// top returns the innermost element; the stack must not be empty.
func (f *foreignStack) top() foreignElement { return f.open[len(f.open)-1] }

// inside reports whether the next tag is read by foreign rules.
func (f *foreignStack) inside() bool { return len(f.open) > 0 && f.top()&fHoldHTML == 0 }

// cdata reports whether a CDATA section may stand here: the innermost open
// element is not HTML's.
func (f *foreignStack) cdata() bool {
	return len(f.open) > 0 && (f.top()&fHoldHTML == 0 || !f.html)
}

func (f *foreignStack) push(e foreignElement) {
	f.open = append(f.open, e)
	f.count[e&fNameMask]++
	f.html = false
}

func (f *foreignStack) pop() {
	f.count[f.top()&fNameMask]--
	f.open = f.open[:len(f.open)-1]
	f.html = false
}

// enter opens svg or math from HTML.
func (f *foreignStack) enter(name uint64) {
	if name == nMath {
		f.push(fMath | fInMath)
		return
	}
	f.push(fSvg)
}

// end handles an end tag and reports whether it was one of the stack's.
func (f *foreignStack) end(name uint64, raw []byte) bool {
	if e, ok := foreignName(name); ok && f.count[e] > 0 {
		for f.top()&fNameMask != e {
			f.pop()
		}
		f.pop()
		return true
	}
	// The end of an HTML element around an svg that was never closed.
	if f.inside() && endsHTML(raw) {
		f.breakOut()
	}
	return false
}

// breakOut closes elements until HTML is read again.
func (f *foreignStack) breakOut() {
	for f.inside() {
		f.pop()
	}
}

// glyph reports whether name is one of the two MathML elements that stay
// MathML where MathML's text holds HTML.
func (f *foreignStack) glyph(name uint64) bool {
	if name != nMglyph && name != nMalignmark || len(f.open) == 0 {
		return false
	}
	top := f.top()
	return top&fInMath != 0 && top&fNameMask != fAnnotationXML
}

// startInForeign is startTag while the stack is not empty.
func (s *Scanner) startInForeign(b []byte, i int, name uint64, raw []byte) int {
	start := i
	i, selfClosing, ok := s.attrs.read(b, i)
	if !ok {
		return len(b)
	}
	f := &s.foreign
	if f.inside() && s.breaksOut(raw) {
		f.breakOut()
	}
	if !f.inside() && !f.glyph(name) {
		if len(f.open) > 0 {
			f.html = true
		}
		return s.startInHTML(b, start, name)
	}
	math := f.top() & fInMath
	if name == nA && math == 0 {
		s.svgAnchor()
	}
	e, ok := foreignName(name)
	if !ok || selfClosing {
		return i
	}
	switch e {
	case fSvg:
		if f.top()&fNameMask == fAnnotationXML {
			math = 0
		}
	case fForeignObject, fDesc, fTitle:
		if math == 0 {
			e |= fHoldHTML
		}
	case fMi, fMo, fMn, fMs, fMtext:
		if math != 0 {
			e |= fHoldHTML
		}
	case fAnnotationXML:
		enc := s.attrs.get(attrEncoding)
		if math != 0 && (equalFold(enc, "text/html") || equalFold(enc, "application/xhtml+xml")) {
			e |= fHoldHTML
		}
	}
	f.push(e | math)
	return i
}

// svgAnchor adds an SVG link; href wins over the older xlink:href.
func (s *Scanner) svgAnchor() {
	if s.inert > 0 {
		return
	}
	from := attrHref
	if !s.attrs.has(attrHref) {
		from = attrXlinkHref
	}
	if s.attrs.has(from) {
		s.addLink(from, Anchor, parseRel(s.attrs.get(attrRel)))
	}
}

// breaksOut reports whether a start tag ends foreign content: authors who
// write a div inside an svg have forgotten to close it.
func (s *Scanner) breaksOut(name []byte) bool {
	if s.xml {
		return false
	}
	return isHTMLOnly(name) || equalFold(name, "font") && s.attrs.has(attrFont)
}

// isHTMLOnly lists the names the HTML standard breaks out of foreign content
// for.
func isHTMLOnly(name []byte) bool {
	const longest = len("blockquote")
	if len(name) > longest {
		return false
	}
	var lower [longest]byte
	for i, c := range name {
		lower[i] = c | 0x20
	}
	switch string(lower[:len(name)]) {
	case "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed",
		"h1", "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta",
		"nobr", "ol", "p", "pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup",
		"table", "tt", "u", "ul", "var":
		return true
	}
	return false
}

// endsHTML reports whether an end tag that matches nothing foreign belongs to
// an HTML element that is open around it. A tree would know; no element of
// SVG or MathML has these names, so it is nearly always so.
func endsHTML(name []byte) bool {
	if isHTMLOnly(name) {
		return true
	}
	for _, n := range [...]string{"a", "article", "aside", "button", "caption", "details", "figure", "footer", "form",
		"header", "html", "label", "main", "nav", "section", "summary", "tbody", "td", "th", "tr"} {
		if equalFold(name, n) {
			return true
		}
	}
	return false
}
