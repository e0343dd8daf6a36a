package extract

import "bytes"

// attr numbers the attributes that are ever looked at.
type attr uint8

const (
	attrHref attr = iota
	attrSrc
	attrRel
	attrName
	attrContent
	attrHTTPEquiv
	attrCharset
	attrLang
	attrXMLLang
	attrHreflang
	attrType
	attrXlinkHref
	attrShadowMode
	attrEncoding
	attrFont // color, face or size, which make a font element leave SVG
	numAttrs
	attrNone = numAttrs
)

// attrs holds one tag's attributes; the first of a name counts.
type attrs struct {
	have uint32
	val  [numAttrs][]byte
}

func (a *attrs) has(k attr) bool { return a.have&(1<<k) != 0 }

// get returns the raw value, nil when the attribute is absent.
func (a *attrs) get(k attr) []byte {
	if !a.has(k) {
		return nil
	}
	return a.val[k]
}

// read runs from the end of a tag's name past its ">". ok is false at the end
// of input; selfClosing says that the tag ended in "/>".
func (a *attrs) read(b []byte, i int) (end int, selfClosing, ok bool) {
	a.have = 0
	for i < len(b) {
		c := b[i]
		if class[c]&cAttrEnd != 0 && c != '=' {
			i++
			if c == '>' {
				return i, selfClosing, true
			}
			selfClosing = c == '/'
			continue
		}
		selfClosing = false
		start := i
		i++ // a name's first byte may be anything, "=" included
		for i < len(b) && class[b[i]]&cAttrEnd == 0 {
			i++
		}
		k := attrOf(b[start:i])
		for i < len(b) && isSpace(b[i]) {
			i++
		}
		var v []byte
		if i < len(b) && b[i] == '=' {
			i++
			for i < len(b) && isSpace(b[i]) {
				i++
			}
			if i == len(b) {
				break
			}
			if q := b[i]; q == '"' || q == '\'' {
				n := bytes.IndexByte(b[i+1:], q)
				if n < 0 {
					break
				}
				v = b[i+1 : i+1+n]
				i += n + 2
			} else {
				start := i
				for i < len(b) && class[b[i]]&cValueEnd == 0 {
					i++
				}
				v = b[start:i]
			}
		}
		if k != attrNone && !a.has(k) {
			a.have |= 1 << k
			a.val[k] = v
		}
	}
	return len(b), false, false
}

func attrOf(name []byte) attr {
	switch len(name) {
	case 3:
		if equalFold(name, "rel") {
			return attrRel
		}
		if equalFold(name, "src") {
			return attrSrc
		}
	case 4:
		switch name[0] | 0x20 {
		case 'h':
			if equalFold(name, "href") {
				return attrHref
			}
		case 'n':
			if equalFold(name, "name") {
				return attrName
			}
		case 'l':
			if equalFold(name, "lang") {
				return attrLang
			}
		case 't':
			if equalFold(name, "type") {
				return attrType
			}
		case 'f':
			if equalFold(name, "face") {
				return attrFont
			}
		case 's':
			if equalFold(name, "size") {
				return attrFont
			}
		}
	case 5:
		if equalFold(name, "color") {
			return attrFont
		}
	case 7:
		if equalFold(name, "content") {
			return attrContent
		}
		if equalFold(name, "charset") {
			return attrCharset
		}
	case 8:
		if equalFold(name, "hreflang") {
			return attrHreflang
		}
		if equalFold(name, "xml:lang") {
			return attrXMLLang
		}
		if equalFold(name, "encoding") {
			return attrEncoding
		}
	case 10:
		if equalFold(name, "http-equiv") {
			return attrHTTPEquiv
		}
		if equalFold(name, "xlink:href") {
			return attrXlinkHref
		}
	case 14:
		if equalFold(name, "shadowrootmode") {
			return attrShadowMode
		}
	}
	return attrNone
}
