package pebblestore

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"tiptoe/internal/weburl"
)

func fpOf(url string) weburl.Fingerprint { return weburl.FromCanonical(url).Fingerprint() }

func randomFPs(n int, seed uint64) []weburl.Fingerprint {
	rnd := rand.New(rand.NewPCG(seed, seed))
	list := make([]weburl.Fingerprint, n)
	for i := range list {
		list[i] = weburl.Fingerprint{Hi: rnd.Uint64(), Lo: rnd.Uint64()}
	}
	return list
}

func TestTheTableAgreesWithAMap(t *testing.T) {
	// Few shards, few low halves, zero among them: collisions of every kind.
	gen := rapid.Custom(func(t *rapid.T) weburl.Fingerprint {
		return weburl.Fingerprint{
			Hi: uint64(rapid.IntRange(0, 3).Draw(t, "shard"))<<56 | uint64(rapid.IntRange(0, 2).Draw(t, "tag"))<<48,
			Lo: uint64(rapid.IntRange(0, 60).Draw(t, "lo")),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		set, model := newSeenSet(), map[weburl.Fingerprint]int{}
		for range 300 {
			fp := gen.Draw(t, "fp")
			if rapid.Bool().Draw(t, "insert") {
				if fresh := set.insert(fp); fresh != (model[fp] == 0) {
					t.Fatalf("insert(%v) says %t", fp, fresh)
				}
				model[fp] = max(model[fp], 1)
			} else if known := set.look(fp); known != (model[fp] > 0) {
				t.Fatalf("look(%v) says %t", fp, known)
			} else if known {
				model[fp]++
			}
			if got := set.inLinks(fp); got != model[fp] {
				t.Fatalf("%v has %d in-links, want %d", fp, got, model[fp])
			}
		}
		if n, _ := set.resident(); n != len(model) {
			t.Fatalf("holds %d, want %d", n, len(model))
		}
	})
}

func TestTheTableGrowsAndKeepsEverything(t *testing.T) {
	set := newSeenSet()
	all := randomFPs(60_000, 1)
	for i, fp := range all {
		set.insert(fp)
		if i%1000 == 0 && !set.look(all[i/2]) {
			t.Fatalf("lost %d at %d", i/2, i)
		}
	}
	for i, fp := range all {
		if !set.look(fp) {
			t.Fatalf("lost %d", i)
		}
	}
	for i, fp := range randomFPs(60_000, 2) {
		if set.look(fp) {
			t.Fatalf("%d was never put in", i)
		}
	}
	n, bytes := set.resident()
	if n != len(all) || bytes > 26*n {
		t.Errorf("%d fingerprints take %d bytes", n, bytes)
	}
}

func TestInLinksStopCountingAtTheirLimit(t *testing.T) {
	set := newSeenSet()
	fp := fpOf("https://a.example/")
	set.insert(fp)
	for range 1000 {
		if !set.look(fp) {
			t.Fatal("forgotten")
		}
	}
	if n := set.inLinks(fp); n != maxInLinks {
		t.Errorf("%d in-links, want %d", n, maxInLinks)
	}
}

func TestURLsThatShareTheirLowBitsDoNotMakeOneLongRun(t *testing.T) {
	// 3,000 fingerprints of one shard that agree in the low 32 bits: what
	// somebody could publish on purpose. Probing must stay short.
	set := newSeenSet()
	for i := range uint64(3000) {
		set.insert(weburl.Fingerprint{Hi: 1 << 56, Lo: i<<32 | 12345})
	}
	sh := &set.shards[1]
	longest, run := 0, 0
	for _, m := range sh.meta {
		if m == 0 {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	if longest > 700 {
		t.Errorf("the longest run is %d of %d slots", longest, len(sh.meta))
	}
}

func TestReadersAndOneWriterShareATableAndAFilter(t *testing.T) {
	set := newSeenSet()
	all := randomFPs(20_000, 3)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, fp := range all {
				set.look(fp)
				set.maybeSpilled(fp)
			}
		})
	}
	for i, fp := range all {
		if i%2 == 0 {
			set.insert(fp)
		} else {
			set.spill(fp)
		}
	}
	wg.Wait()
	for i, fp := range all {
		if i%2 == 0 && !set.look(fp) || i%2 == 1 && !set.maybeSpilled(fp) {
			t.Fatalf("lost %d", i)
		}
	}
}

func TestTheFilterForgetsNothingAndErrsOnceInAHundredAtMost(t *testing.T) {
	const room = 1 << 13
	f := filter{firstRoom: room}
	all := randomFPs(room*(1+layerGrowth+layerGrowth*layerGrowth), 4)
	for _, fp := range all {
		f.add(fp)
	}
	for i, fp := range all {
		if !f.has(fp) {
			t.Fatalf("forgot %d", i)
		}
	}
	if got := len(*f.layers.Load()); got != 3 {
		t.Fatalf("%d layers, want 3", got)
	}
	wrong, asked := make([]int, 3), 100_000
	for _, fp := range randomFPs(asked, 5) {
		for i, l := range *f.layers.Load() {
			if l.has(fp) {
				wrong[i]++
			}
		}
	}
	t.Logf("false hits in %d questions: %v; %.1f bits a fingerprint", asked, wrong, 8*float64(f.bytes())/float64(len(all)))
	for i, limit := range []int{500, 220, 110} { // 0.5, 0.22 and 0.11 %: 1 % is never reached
		if wrong[i] > limit {
			t.Errorf("layer %d errs %d times in %d", i, wrong[i], asked)
		}
	}
}

func TestABatchFindsItsOwnDuplicates(t *testing.T) {
	var l localSet
	for _, n := range []int{1, 10, 1000, 10} {
		offers := make([]offer, 0, 2*n)
		for i := range n {
			offers = append(offers, offer{crawl: 1, fp: fpOf(fmt.Sprint(i))}, offer{crawl: 2, fp: fpOf(fmt.Sprint(i / 2))})
		}
		l.reset(len(offers))
		fresh := 0
		for i := range offers {
			if l.add(offers, i) {
				fresh++
			}
		}
		if want := n + (n+1)/2; fresh != want {
			t.Errorf("%d of %d are new, want %d", fresh, len(offers), want)
		}
	}
}

func TestSeenDoesNotAllocate(t *testing.T) {
	s := openMem(t, Options{})
	addURLs(t, s, 1, 0, 100)
	hit, miss := fpOf(urlOf(5)), fpOf("https://nobody.example/")
	if n := testing.AllocsPerRun(100, func() {
		if !s.Seen(1, hit) || s.Seen(1, miss) {
			t.Fatal("wrong answer")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
