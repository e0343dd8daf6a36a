package webfarm

import "strconv"

// fillerSize is the length of the text all paragraphs are cut from: long
// enough that pages differ, short enough to stay in a processor's cache.
const fillerSize = 1 << 16

// newFiller writes words with now and then a full stop. It is plain ASCII
// without markup, so it can be cut anywhere.
func newFiller(seed uint64) []byte {
	b := make([]byte, 0, fillerSize+32)
	for n := uint64(0); len(b) < fillerSize; n++ {
		d := mix(mix(seed, saltText), n)
		b = append(b, words[d%uint64(len(words))]...)
		switch (d >> 32) % 9 {
		case 0:
			b = append(b, ". "...)
		case 1:
			b = append(b, ", "...)
		default:
			b = append(b, ' ')
		}
	}
	return b[:fillerSize]
}

const (
	tagLink  = "<p><a href=\""
	tagText  = "\">"
	tagAfter = "</a> "
	tagEnd   = "</p>\n"
	pageTail = "</p>\n</main>\n</body>\n</html>\n"
)

// appendPage appends the HTML of a page. Text and links alternate, as they do
// on written pages, so that a scanner meets a link every few hundred bytes.
func (p *plan) appendPage(dst []byte, host, page int) []byte {
	start := len(dst)
	dst = append(dst, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>"...)
	dst = p.appendTitle(dst, host, page)
	dst = append(dst, "</title>\n<meta name=\"description\" content=\""...)
	text := p.draw(saltText, host, page, 0)
	dst = p.appendFiller(dst, text, 96)
	dst = append(dst, "\">\n</head>\n<body>\n<main>\n<h1>"...)
	dst = p.appendTitle(dst, host, page)
	dst = append(dst, "</h1>\n"...)
	for n := range p.Links {
		dst = append(dst, tagLink...)
		dst = p.appendLink(dst, host, page, n)
		dst = append(dst, tagText...)
		text = mix(text, uint64(n))
		dst = append(dst, words[text%uint64(len(words))]...)
		dst = append(dst, ' ')
		dst = append(dst, words[(text>>8)%uint64(len(words))]...)
		dst = append(dst, tagAfter...)
		left := p.PageSize - (len(dst) - start) - len(pageTail)
		dst = p.appendFiller(dst, text, left/(p.Links-n)-70)
		dst = append(dst, tagEnd...)
	}
	if p.ClosedLinks {
		dst = append(dst, "<p><a href=\""...)
		dst = append(dst, closedPrefix...)
		dst = strconv.AppendInt(dst, int64(page), 10)
		dst = append(dst, "\">private</a></p>\n"...)
	}
	dst = append(dst, "<p>"...)
	dst = p.appendFiller(dst, mix(text, 0), p.PageSize-(len(dst)-start)-len(pageTail))
	return append(dst, pageTail...)
}

func (p *plan) appendTitle(dst []byte, host, page int) []byte {
	d := p.draw(saltName, host, page, 0)
	dst = append(dst, words[(d>>8)%uint64(len(words))]...)
	dst = append(dst, " and "...)
	dst = append(dst, words[(d>>16)%uint64(len(words))]...)
	dst = append(dst, ", page "...)
	dst = strconv.AppendInt(dst, int64(page), 10)
	dst = append(dst, " of host "...)
	return strconv.AppendInt(dst, int64(host), 10)
}

// appendLink appends the n-th link of a page as an href.
func (p *plan) appendLink(dst []byte, host, page, n int) []byte {
	toHost, to := p.target(host, page, n)
	through := p.redirected(toHost, to)
	style := p.draw(saltLink, host, page, n) >> 60 // sixteenths
	switch {
	case toHost != host || style == 0:
		dst = append(dst, p.origins[toHost]...)
	case style <= 2 && !through && to > 0:
		if page > 0 {
			dst = append(dst, "../"...)
		}
		return p.appendName(dst, toHost, to)
	}
	if through {
		dst = append(dst, redirectPrefix...)
		dst = strconv.AppendInt(dst, int64(to), 10)
	} else {
		dst = p.appendPath(dst, toHost, to)
	}
	if style == 3 {
		dst = append(dst, "#top"...)
	}
	return dst
}

// appendFiller appends n bytes of text, or nothing if n is not positive.
func (p *plan) appendFiller(dst []byte, where uint64, n int) []byte {
	at := int(where % fillerSize)
	for n > 0 {
		k := min(n, fillerSize-at)
		dst = append(dst, p.filler[at:at+k]...)
		n -= k
		at = 0
	}
	return dst
}
