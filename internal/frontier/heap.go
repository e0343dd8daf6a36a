package frontier

// readyHeap orders groups by the time at which they are due, then by the
// order in which they were filed.
type readyHeap []*group

func (h readyHeap) less(i, j int) bool {
	return h[i].before(h[j])
}

func (g *group) before(o *group) bool {
	if !g.at.Equal(o.at) {
		return g.at.Before(o.at)
	}
	return g.seq < o.seq
}

func (h readyHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIx, h[j].heapIx = i, j
}

func (h *readyHeap) push(g *group) {
	g.heapIx = len(*h)
	*h = append(*h, g)
	h.up(g.heapIx)
}

func (h *readyHeap) remove(i int) *group {
	old := *h
	n := len(old) - 1
	g := old[i]
	old.swap(i, n)
	old[n] = nil
	*h = old[:n]
	if i < n {
		h.down(i)
		h.up(i)
	}
	g.heapIx = -1
	return g
}

func (h readyHeap) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !h.less(i, p) {
			return
		}
		h.swap(i, p)
		i = p
	}
}

func (h readyHeap) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h.less(c+1, c) {
			c++
		}
		if !h.less(c, i) {
			return
		}
		h.swap(i, c)
		i = c
	}
}
