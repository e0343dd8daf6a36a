package extract

import "bytes"

// declaration handles "<!" at i-2: a comment, a doctype, a CDATA section
// where those exist, or anything else up to ">".
func (s *Scanner) declaration(b []byte, i int) int {
	rest := b[i:]
	switch {
	case len(rest) >= 2 && rest[0] == '-' && rest[1] == '-':
		return skipComment(b, i+2)
	case len(rest) >= 7 && string(rest[:7]) == "[CDATA[" && (s.xml || s.foreign.cdata()):
		k := bytes.Index(rest[7:], []byte("]]>"))
		if k < 0 {
			return len(b)
		}
		return i + 7 + k + 3
	}
	return bogusComment(b, i)
}

// instruction handles "<?": one in XML, a bogus comment in HTML.
func (s *Scanner) instruction(b []byte, i int) int {
	if !s.xml {
		return bogusComment(b, i)
	}
	k := bytes.Index(b[i:], []byte("?>"))
	if k < 0 {
		return len(b)
	}
	return i + k + 2
}

func bogusComment(b []byte, i int) int {
	k := bytes.IndexByte(b[i:], '>')
	if k < 0 {
		return len(b)
	}
	return i + k + 1
}

// skipComment runs from just after "<!--" past the comment's end, which is
// "-->", "--!>", or at once ">" or "->".
func skipComment(b []byte, start int) int {
	i := start
	for {
		k := bytes.IndexByte(b[i:], '>')
		if k < 0 {
			return len(b)
		}
		i += k + 1
		body := b[start : i-1]
		n := len(body)
		switch {
		case n == 0, n == 1 && body[0] == '-':
			return i
		case n >= 2 && body[n-1] == '-' && body[n-2] == '-':
			return i
		case n >= 3 && body[n-1] == '!' && body[n-2] == '-' && body[n-3] == '-':
			return i
		}
	}
}

// rawEnd finds the "</name" that ends raw text starting at i, or len(b).
func rawEnd(b []byte, i int, name string) int {
	for {
		k := bytes.IndexByte(b[i:], '<')
		if k < 0 {
			return len(b)
		}
		i += k
		if i+1 < len(b) && b[i+1] == '/' && isTagAt(b, i+2, name) {
			return i
		}
		i++
	}
}

// isTagAt reports whether name stands at i and ends there as a tag name does.
func isTagAt(b []byte, i int, name string) bool {
	end := i + len(name)
	return end < len(b) && class[b[end]]&cNameEnd != 0 && equalFold(b[i:end], name)
}

// closeRaw runs past the end tag at i, as rawEnd found it.
func closeRaw(b []byte, i int) int {
	if i == len(b) {
		return i
	}
	_, i = tagName(b, i+2)
	return skipTag(b, i)
}

func skipRaw(b []byte, i int, name string) int {
	return closeRaw(b, rawEnd(b, i, name))
}

// skipScript runs from the start of a script's text past its end tag. Inside
// "<!--" a script is escaped; a "<script" there makes it doubly escaped, and
// then "</script" only leads back to escaped. "-->" ends both.
func skipScript(b []byte, i int) int {
	const (
		plain = iota
		escaped
		doubly
	)
	state := plain
	from := 0 // while escaped: "-->" has not been looked for from here on
	for {
		k := bytes.IndexByte(b[i:], '<')
		if k < 0 {
			return len(b)
		}
		i += k
		if state != plain {
			// Looking only as far as the next "<" keeps the whole scan
			// linear when thousands of scripts open an escape.
			if bytes.Contains(b[from:i], []byte("-->")) {
				state = plain
			}
			from = i
		}
		rest := b[i+1:]
		switch {
		case len(rest) == 0:
			return len(b)
		case rest[0] == '/' && isTagAt(b, i+2, "script"):
			if state != doubly {
				return closeRaw(b, i)
			}
			state = escaped
		case state == plain && len(rest) >= 3 && string(rest[:3]) == "!--":
			state = escaped
			from = i + 2 // the dashes of "<!-->" may themselves be the end's
		case state == escaped && isTagAt(b, i+1, "script"):
			state = doubly
		}
		i++
	}
}
