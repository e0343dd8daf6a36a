package pebblestore

import (
	"cmp"
	"math/bits"
	"slices"
	"sync/atomic"

	"tiptoe/internal/weburl"
)

// filter is a Bloom filter that grows by adding layers. It never forgets, so
// a miss is certain; a hit is a reason to ask the disk. Each layer is four
// times the size of the one before and stricter, so that all of them together
// stay below one false hit in a hundred: 0.4 % for the first, then 0.2, 0.1.
//
// A layer is an array of 64-byte blocks, one cache line each: the high half
// of a fingerprint picks the block, the low half sets one bit in each of its
// eight words.
//
// One goroutine adds at a time; any number may ask meanwhile.
type filter struct {
	layers    atomic.Pointer[[]*layer]
	firstRoom int // fingerprints in the first layer; 0 is the default
}

type layer struct {
	words []uint64
	room  int
}

const (
	firstLayerRoom = 1 << 18
	layerGrowth    = 4
	firstLayerBits = 12 // bits a fingerprint; two more for each further layer
	lastLayerBits  = 18
	blockWords     = 8
)

// laneSalt turns one 64-bit hash into eight independent 6-bit ones. Odd
// numbers without structure: the fraction of the square roots of 2, 3, 5, 7,
// 11, 13, 17 and 19, made odd.
var laneSalt = [blockWords]uint64{
	0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
}

// newLayer makes the i-th layer of a filter whose first one has that room.
func newLayer(room, i int) *layer {
	for range i {
		room *= layerGrowth
	}
	blocks := (room*min(firstLayerBits+2*i, lastLayerBits) + 511) / 512
	return &layer{words: make([]uint64, blocks*blockWords), room: room}
}

func (f *filter) add(fp weburl.Fingerprint) {
	var layers []*layer
	if p := f.layers.Load(); p != nil {
		layers = *p
	}
	if n := len(layers); n == 0 || layers[n-1].room == 0 {
		layers = append(slices.Clip(layers), newLayer(cmp.Or(f.firstRoom, firstLayerRoom), n))
		f.layers.Store(&layers)
	}
	l := layers[len(layers)-1]
	l.room--
	block := l.block(fp)
	for i := range block {
		atomic.OrUint64(&block[i], 1<<(fp.Lo*laneSalt[i]>>58))
	}
}

func (f *filter) has(fp weburl.Fingerprint) bool {
	p := f.layers.Load()
	if p == nil {
		return false
	}
	// The last layer is the largest and holds most of what is there.
	for i := len(*p) - 1; i >= 0; i-- {
		if (*p)[i].has(fp) {
			return true
		}
	}
	return false
}

func (f *filter) bytes() (n int) {
	if p := f.layers.Load(); p != nil {
		for _, l := range *p {
			n += len(l.words) * 8
		}
	}
	return n
}

func (l *layer) block(fp weburl.Fingerprint) []uint64 {
	i, _ := bits.Mul64(fp.Hi, uint64(len(l.words)/blockWords))
	return l.words[i*blockWords:][:blockWords]
}

func (l *layer) has(fp weburl.Fingerprint) bool {
	block := l.block(fp)
	for i := range block {
		if atomic.LoadUint64(&block[i])&(1<<(fp.Lo*laneSalt[i]>>58)) == 0 {
			return false
		}
	}
	return true
}
