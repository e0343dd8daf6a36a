package extract

import (
	"bytes"
	"strings"
)

// startTag handles the tag whose name starts at i and returns where the scan
// goes on, past the content if that is raw text.
func (s *Scanner) startTag(b []byte, i int) int {
	name, end := tagName(b, i)
	if len(s.foreign.open) > 0 {
		return s.startInForeign(b, end, name, b[i:end])
	}
	return s.startInHTML(b, end, name)
}

func (s *Scanner) startInHTML(b []byte, i int, name uint64) int {
	switch name {
	default:
		return skipTag(b, i)
	case nA, nArea, nBase, nFrame, nHTML, nIFrame, nLink, nMath, nMeta, nNoembed, nNoframes, nPlaintext,
		nScript, nStyle, nSvg, nTemplate, nTextarea, nTitle, nXmp:
	}
	end, selfClosing, ok := s.attrs.read(b, i)
	if !ok {
		return len(b)
	}
	return s.element(b, end, name, selfClosing)
}

// element acts on an HTML element whose tag, read into s.attrs, ended at i.
func (s *Scanner) element(b []byte, i int, name uint64, selfClosing bool) int {
	empty := selfClosing && s.xml // HTML ignores the slash
	live := s.inert == 0
	switch name {
	case nA:
		if live && s.attrs.has(attrHref) {
			s.addLink(attrHref, Anchor, parseRel(s.attrs.get(attrRel)))
		}
	case nArea:
		if live && s.attrs.has(attrHref) {
			s.addLink(attrHref, Area, parseRel(s.attrs.get(attrRel)))
		}
	case nLink:
		if live {
			s.linkElement()
		}
	case nMeta:
		if live {
			s.metaElement()
		}
	case nBase:
		if live && !s.hasBase && s.attrs.has(attrHref) {
			s.base, s.hasBase = s.attrs.get(attrHref), true
		}
	case nHTML:
		s.htmlElement()
	case nFrame:
		if live && s.attrs.has(attrSrc) {
			s.addLink(attrSrc, Frame, 0)
		}
	case nIFrame:
		if live && s.attrs.has(attrSrc) {
			s.addLink(attrSrc, IFrame, 0)
		}
		if !empty {
			return skipRaw(b, i, "iframe")
		}
	case nTitle:
		if empty {
			break
		}
		end := rawEnd(b, i, "title")
		if live && !s.hasTitle {
			s.title, s.hasTitle = b[i:min(end, i+maxRawText)], true
		}
		return closeRaw(b, end)
	case nTemplate:
		if !empty {
			s.openTemplate()
		}
	case nSvg, nMath:
		if !selfClosing {
			s.foreign.enter(name)
		}
	case nPlaintext:
		if !s.xml {
			return len(b)
		}
	case nScript:
		if !empty {
			return skipScript(b, i)
		}
	case nStyle:
		if !empty {
			return skipRaw(b, i, "style")
		}
	case nTextarea:
		if !empty {
			return skipRaw(b, i, "textarea")
		}
	case nXmp:
		if !empty {
			return skipRaw(b, i, "xmp")
		}
	case nNoembed:
		if !empty {
			return skipRaw(b, i, "noembed")
		}
	case nNoframes:
		if !empty {
			return skipRaw(b, i, "noframes")
		}
	}
	return i
}

// endTag handles "</" at i-2.
func (s *Scanner) endTag(b []byte, i int) int {
	if i == len(b) || !isLetter(b[i]) {
		return bogusComment(b, i) // "</>" included
	}
	start := i
	name, i := tagName(b, i)
	raw := b[start:i]
	if i < len(b) && b[i] == '>' {
		i++
	} else if i = skipTag(b, i); i == len(b) {
		return i // even if it was complete, nothing follows
	}
	if len(s.foreign.open) > 0 && s.foreign.end(name, raw) {
		return i
	}
	if name == nTemplate {
		s.closeTemplate()
	}
	return i
}

// A template's content is inert, unless it is a shadow root's. Inert
// templates never contain live ones, so two counters are a stack.
func (s *Scanner) openTemplate() {
	mode := s.attrs.get(attrShadowMode)
	switch {
	case s.inert == 0 && (equalFold(mode, "open") || equalFold(mode, "closed")):
		s.shadow++
	default:
		s.inert++
	}
}

func (s *Scanner) closeTemplate() {
	switch {
	case s.inert > 0:
		s.inert--
	case s.shadow > 0:
		s.shadow--
	}
}

// addLink collects a reference, still raw.
func (s *Scanner) addLink(from attr, kind Kind, rel Rel) {
	ref := trimRef(s.attrs.get(from))
	if len(ref) > MaxRef || len(ref) == 0 && kind != Anchor && kind != Area {
		return
	}
	if len(s.page.Links) >= MaxLinks {
		s.page.Truncated = true
		return
	}
	s.page.Links = append(s.page.Links, Link{Ref: ref, Kind: kind, Rel: rel &^ stylesheet})
}

func (s *Scanner) linkElement() {
	rel := parseRel(s.attrs.get(attrRel))
	if rel&linkRels == 0 || rel&stylesheet != 0 || !s.attrs.has(attrHref) {
		return
	}
	if rel&RelAlternate != 0 {
		rel |= relOfType(s.attrs.get(attrType))
	}
	n := len(s.page.Links)
	s.addLink(attrHref, LinkElement, rel)
	if len(s.page.Links) == n {
		return
	}
	if rel&RelAlternate != 0 {
		s.page.Links[n].Lang = s.attrs.get(attrHreflang)
	}
	if rel&RelCanonical != 0 && s.canonical < 0 {
		s.canonical = n
	}
}

func (s *Scanner) htmlElement() {
	if s.hasL || s.inert > 0 {
		return
	}
	for _, k := range [...]attr{attrLang, attrXMLLang} {
		if s.attrs.has(k) {
			s.lang, s.hasL = s.attrs.get(k), true
			return
		}
	}
}

func (s *Scanner) metaElement() {
	if s.metaCharset == nil {
		if s.attrs.has(attrCharset) {
			s.metaCharset = s.attrs.get(attrCharset)
		} else if equalFold(s.attrs.get(attrHTTPEquiv), "content-type") {
			s.metaCharset = charsetParam(s.attrs.get(attrContent))
		}
	}
	if !s.attrs.has(attrContent) {
		return
	}
	content := s.attrs.get(attrContent)
	if equalFold(s.attrs.get(attrHTTPEquiv), "refresh") {
		if len(content) <= MaxRef && len(s.page.Links) < MaxLinks {
			s.page.Links = append(s.page.Links, Link{Ref: content, Kind: Refresh})
		}
		return
	}
	switch name := bytes.Trim(s.attrs.get(attrName), "\t\n\f\r "); {
	case len(name) == 0:
	case equalFold(name, "robots"), strings.EqualFold(string(name), s.Agent):
		s.page.Robots |= parseDirectives(content)
	case equalFold(name, "description") && !s.hasDesc:
		s.description, s.hasDesc = content[:min(len(content), maxRawText)], true
	}
}
