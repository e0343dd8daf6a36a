package frontiertest

import "tiptoe/internal/frontier"

// spending is what Board promises about page budgets.
func spending(f *fleet) {
	m := f.start("w")
	must := func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	spend := func(n, granted, spent int64) {
		f.Helper()
		got, all, err := m.Spend(ctx, 1, "w", n)
		if err != nil || got != granted || all != spent {
			f.Errorf("asked for %d: %d granted, %d spent, %v; want %d and %d", n, got, all, err, granted, spent)
		}
	}
	announce := func(pages, used int64) {
		must(m.Announce(ctx, frontier.Announced{ID: 1, By: "w", First: true, Cap: pages, Used: used}))
	}
	spend(3, 0, 0) // its cap is not known
	announce(10, 0)
	spend(8, 8, 8)
	spend(-2, -2, 6)
	must(m.Withdraw(ctx, 1, "w"))
	spend(3, 0, 6)
	announce(10, 4)
	spend(0, 0, 6) // two of them have no row; they were taken all the same
	spend(8, 4, 10)
	must(m.Withdraw(ctx, 1, "w"))
	spend(-3, -3, 7)
	must(m.DropCrawl(ctx, 1))
	must(m.OpenCrawl(ctx, 1))
	announce(10, 4) // to a store that has forgotten
	spend(8, 6, 10)
	announce(0, 0) // no cap
	spend(50, 50, 60)
	spend(-99, -60, 0)
}
