package extract

import "bytes"

// Names are compared as integers: the lower-cased bytes, most significant
// first, of names up to eight bytes long; longer ones are compared as text.
const (
	nA        = 'a'
	nArea     = 'a'<<24 | 'r'<<16 | 'e'<<8 | 'a'
	nBase     = 'b'<<24 | 'a'<<16 | 's'<<8 | 'e'
	nDesc     = 'd'<<24 | 'e'<<16 | 's'<<8 | 'c'
	nFrame    = 'f'<<32 | 'r'<<24 | 'a'<<16 | 'm'<<8 | 'e'
	nHTML     = 'h'<<24 | 't'<<16 | 'm'<<8 | 'l'
	nIFrame   = 'i'<<40 | nFrame
	nLink     = 'l'<<24 | 'i'<<16 | 'n'<<8 | 'k'
	nMath     = 'm'<<24 | 'a'<<16 | 't'<<8 | 'h'
	nMeta     = 'm'<<24 | 'e'<<16 | 't'<<8 | 'a'
	nMglyph   = 'm'<<40 | 'g'<<32 | 'l'<<24 | 'y'<<16 | 'p'<<8 | 'h'
	nMi       = 'm'<<8 | 'i'
	nMn       = 'm'<<8 | 'n'
	nMo       = 'm'<<8 | 'o'
	nMs       = 'm'<<8 | 's'
	nMtext    = 'm'<<32 | 't'<<24 | 'e'<<16 | 'x'<<8 | 't'
	nNoembed  = 'n'<<48 | 'o'<<40 | 'e'<<32 | 'm'<<24 | 'b'<<16 | 'e'<<8 | 'd'
	nNoframes = 'n'<<56 | 'o'<<48 | nFrame<<8 | 's'
	nScript   = 's'<<40 | 'c'<<32 | 'r'<<24 | 'i'<<16 | 'p'<<8 | 't'
	nStyle    = 's'<<32 | 't'<<24 | 'y'<<16 | 'l'<<8 | 'e'
	nSvg      = 's'<<16 | 'v'<<8 | 'g'
	nTemplate = 't'<<56 | 'e'<<48 | 'm'<<40 | 'p'<<32 | 'l'<<24 | 'a'<<16 | 't'<<8 | 'e'
	nTextarea = 't'<<56 | 'e'<<48 | 'x'<<40 | 't'<<32 | nArea
	nTitle    = 't'<<32 | 'i'<<24 | 't'<<16 | 'l'<<8 | 'e'
	nXmp      = 'x'<<16 | 'm'<<8 | 'p'

	// Longer than eight bytes, so given numbers no packed name can have.
	nPlaintext     = 1
	nForeignObject = 2
	nAnnotationXML = 3
	nMalignmark    = 4
	nOther         = 0
)

// Byte classes.
const (
	cSpace    = 1 << iota // HTML's ASCII whitespace
	cNameEnd              // ends a tag name
	cAttrEnd              // ends an attribute name
	cValueEnd             // ends an unquoted value
	cLetter
)

var class = func() (t [256]uint8) {
	for _, c := range "\t\n\f\r " {
		t[c] = cSpace | cNameEnd | cAttrEnd | cValueEnd
	}
	t['/'] = cNameEnd | cAttrEnd
	t['='] = cAttrEnd
	t['>'] = cNameEnd | cAttrEnd | cValueEnd
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = cLetter, cLetter
	}
	return t
}()

func isSpace(c byte) bool  { return class[c]&cSpace != 0 }
func isLetter(c byte) bool { return class[c]&cLetter != 0 }

// equalFold compares with a lower-case ASCII word, ignoring ASCII case only:
// HTML never folds a Kelvin sign into a k.
func equalFold[T string | []byte](b T, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range len(b) {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// tagName reads the name that starts at i and returns its number and end.
func tagName(b []byte, i int) (name uint64, end int) {
	start := i
	for i < len(b) && class[b[i]]&cNameEnd == 0 {
		name = name<<8 | uint64(b[i]|0x20)
		i++
	}
	if i-start > 8 {
		name = longName(b[start:i])
	}
	return name, i
}

func longName(b []byte) uint64 {
	switch {
	case equalFold(b, "plaintext"):
		return nPlaintext
	case equalFold(b, "foreignobject"):
		return nForeignObject
	case equalFold(b, "annotation-xml"):
		return nAnnotationXML
	case equalFold(b, "malignmark"):
		return nMalignmark
	}
	return nOther
}

// skipTag runs from the end of a tag's name past its ">". At the end of input
// it returns len(b): an unfinished tag is no tag.
func skipTag(b []byte, i int) int {
	for i < len(b) {
		c := b[i]
		if class[c]&cAttrEnd != 0 && c != '=' {
			i++
			if c == '>' {
				return i
			}
			continue
		}
		i++ // a name's first byte may be anything, "=" included
		for i < len(b) && class[b[i]]&cAttrEnd == 0 {
			i++
		}
		for i < len(b) && isSpace(b[i]) {
			i++
		}
		if i == len(b) || b[i] != '=' {
			continue
		}
		i++
		for i < len(b) && isSpace(b[i]) {
			i++
		}
		if i == len(b) {
			break
		}
		if q := b[i]; q == '"' || q == '\'' {
			k := bytes.IndexByte(b[i+1:], q)
			if k < 0 {
				break
			}
			i += k + 2
			continue
		}
		for i < len(b) && class[b[i]]&cValueEnd == 0 {
			i++
		}
	}
	return len(b)
}
