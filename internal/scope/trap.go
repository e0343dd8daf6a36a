package scope

import (
	"strconv"
	"strings"
)

// Bounds of a believable path. Deep trees of documents and sources stay below
// twenty segments; links that lost their base grow without end.
const (
	maxSegments = 32
	maxSame     = 4 // times one segment may not occur, wherever it stands
	maxCycle    = 3 // times a block of two or more segments may not follow itself
	longestLoop = 4 // segments in such a block
)

// repeats finds a path that repeats itself, or is absurdly deep, and returns
// the rule it breaks, or "".
func repeats(path string) string {
	// Four segments are the fewest that can break a rule, and most paths
	// have fewer.
	if strings.Count(path, "/") < maxSame {
		return ""
	}
	var segs [maxSegments]string
	n := 0
	for rest := path[1:]; ; {
		seg, after, more := strings.Cut(rest, "/")
		if !more && seg == "" {
			break // the slash at the end
		}
		if n == maxSegments {
			return "path deeper than " + strconv.Itoa(maxSegments) + " segments"
		}
		segs[n] = seg
		n++
		if !more {
			break
		}
		rest = after
	}
	return repetition(segs[:n])
}

func repetition(segs []string) string {
	for size := 1; size <= longestLoop; size++ {
		need := maxCycle
		if size == 1 {
			need = maxSame
		}
		run := size // length of the stretch in which each segment equals the one size before it
		for i := size; i < len(segs); i++ {
			if segs[i] != segs[i-size] {
				run = size
				continue
			}
			run++
			// Numbers repeat by chance, as in /1/1/1/1: allow twice as many.
			limit := need * size
			if allNumbers(segs[i-size+1 : i+1]) {
				limit *= 2
			}
			if run >= limit {
				return "path repeats /" + strings.Join(segs[i-size+1:i+1], "/")
			}
		}
	}
	for i, s := range segs {
		// One or two letters are the directories of a hashed tree.
		if len(s) < 3 || isNumber(s) {
			continue
		}
		same := 1
		for _, t := range segs[i+1:] {
			if s == t {
				same++
			}
		}
		if same >= maxSame {
			return "path has the segment " + s + " " + strconv.Itoa(same) + " times"
		}
	}
	return ""
}

func allNumbers(segs []string) bool {
	for _, s := range segs {
		if !isNumber(s) {
			return false
		}
	}
	return true
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
