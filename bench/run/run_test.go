package main

import (
	"strings"
	"testing"
)

func TestMediansAreTakenPerFigureAndCompletenessIsTheWorst(t *testing.T) {
	runs := []Run{
		{Name: "colly", Seconds: 1, PagesPerSecond: 100, CPUPer1000: 2, Complete: 1},
		{Name: "tiptoe", Seconds: 1, PagesPerSecond: 900, CPUPer1000: 0.3, Complete: 1},
		{Name: "tiptoe", PagesPerSecond: 300, CPUPer1000: 0.2, Complete: 0.5},
		{Name: "tiptoe", PagesPerSecond: 500, CPUPer1000: 0.1, Complete: 1},
	}
	got := medians([]crawler{{name: "tiptoe"}, {name: "colly"}, {name: "absent"}}, runs)
	if len(got) != 2 || got[0].PagesPerSecond != 500 || got[0].CPUPer1000 != 0.2 || got[0].Complete != 0.5 {
		t.Fatalf("got %+v", got)
	}
	var out strings.Builder
	Report{Medians: got}.table(&out)
	if !strings.Contains(out.String(), "5.00") || !strings.Contains(out.String(), "0.10") || !strings.Contains(out.String(), "50.00 %") {
		t.Errorf("the ratios against colly are missing:\n%s", out.String())
	}
}

func TestAnIncompleteTiptoeFailsTheBenchAndAnIncompleteOtherDoesNot(t *testing.T) {
	if err := verdict([]Run{{Name: "wget2", Complete: 0.9}, {Name: "tiptoe", Complete: 1}}); err != nil {
		t.Error(err)
	}
	if err := verdict([]Run{{Name: "tiptoe", Complete: 0.9999, Pages: 9999, Expected: 10000}}); err == nil {
		t.Error("an incomplete crawl passed")
	}
	if err := verdict([]Run{{Name: "colly", Complete: 1, Failure: "exit status 1"}}); err == nil {
		t.Error("a failed run passed")
	}
}

func TestAMedianOfTwoIsTheirMean(t *testing.T) {
	if m := median([]Run{{Seconds: 1}, {Seconds: 4}}, func(r Run) float64 { return r.Seconds }); m != 2.5 {
		t.Errorf("got %v", m)
	}
}
