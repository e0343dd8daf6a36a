package weburl

import (
	"bytes"
	"strconv"
)

// lastLabel returns what follows the last dot, a final dot aside.
func lastLabel(host []byte) []byte {
	host = bytes.TrimSuffix(host, []byte("."))
	return host[bytes.LastIndexByte(host, '.')+1:]
}

// endsInNumber reports whether the standard takes host for an IPv4 address.
// If it does and the address is malformed, the URL is refused: no such name
// can exist in DNS.
func endsInNumber(host []byte) bool {
	last := lastLabel(host)
	if len(last) == 0 || last[0] < '0' || last[0] > '9' {
		return false
	}
	if len(last) >= 2 && last[0] == '0' && last[1]|0x20 == 'x' {
		for _, c := range last[2:] {
			if unhex(c) < 0 {
				return false
			}
		}
		return true
	}
	for _, c := range last {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// appendIPv4 reads one to four numbers, decimal, octal or hexadecimal, the
// last of which fills all bytes that remain. host may share dst's memory.
func appendIPv4(dst, host []byte) ([]byte, error) {
	host = bytes.TrimSuffix(host, []byte("."))
	var addr uint64
	for parts := 1; ; parts++ {
		dot := bytes.IndexByte(host, '.')
		last := dot < 0
		part := host
		if !last {
			part, host = host[:dot], host[dot+1:]
		}
		n, ok := ipv4Number(part)
		if !ok || parts > 4 {
			return nil, errIPv4
		}
		if last {
			bits := 8 * (5 - parts)
			if n >= 1<<bits {
				return nil, errIPv4
			}
			addr = addr<<bits | n
			break
		}
		if n > 255 {
			return nil, errIPv4
		}
		addr = addr<<8 | n
	}
	for shift := 24; shift >= 0; shift -= 8 {
		dst = strconv.AppendUint(dst, addr>>shift&255, 10)
		if shift > 0 {
			dst = append(dst, '.')
		}
	}
	return dst, nil
}

// ipv4Number returns the value of one part, capped above 32 bits.
func ipv4Number(s []byte) (uint64, bool) {
	if len(s) == 0 {
		return 0, false
	}
	radix := 10
	if len(s) >= 2 && s[0] == '0' {
		if s[1]|0x20 == 'x' {
			s, radix = s[2:], 16
		} else {
			s, radix = s[1:], 8
		}
	}
	var n uint64
	for _, c := range s {
		d := unhex(c)
		if d < 0 || d >= radix {
			return 0, false
		}
		n = min(n*uint64(radix)+uint64(d), 1<<40)
	}
	return n, true
}
