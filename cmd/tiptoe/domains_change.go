package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"tiptoe/internal/app"
	"tiptoe/internal/config"
	"tiptoe/internal/politeness"
	"tiptoe/internal/tui"
	"tiptoe/internal/weburl"
)

type domainsResetCmd struct {
	Hosts []string `arg:"" name:"host" help:"Host, or group of hosts."`
	config.Stores
}

func (c *domainsResetCmd) Run(st *streams) error {
	groups, err := groupNames(c.Hosts)
	if err != nil {
		return err
	}
	return changing(st, c.Stores, func(ctx context.Context, k *app.Knowledge) error {
		var missing []string
		for _, g := range groups {
			known, err := k.Reset(ctx, g)
			switch {
			case err != nil:
				return err
			case !known:
				missing = append(missing, tui.Clean(g, 200))
			default:
				fmt.Fprintf(st.out, "Forgot what was learned about %s.\n", tui.Clean(g, 200))
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("nothing is known of %s", strings.Join(missing, ", "))
		}
		return nil
	})
}

type domainsSetCmd struct {
	Host  string         `arg:"" name:"host" help:"Host, or group of hosts."`
	Delay *time.Duration `help:"Learned delay between request starts, up to 60s; it is probed and ages like one that was learned." placeholder:"D"`
	Floor *time.Duration `help:"Shortest delay that probes may try." placeholder:"D"`
	Block *time.Duration `help:"Leave the host alone for so long, up to 1h; 0 lifts a block." placeholder:"D"`
	config.Stores
}

func (c *domainsSetCmd) Run(st *streams) error {
	groups, err := groupNames([]string{c.Host})
	if err != nil {
		return err
	}
	if c.Delay == nil && c.Floor == nil && c.Block == nil {
		return usageErrorf("nothing to set; write --delay 3s, --floor 1s or --block 10m")
	}
	now := app.Clock()()
	if err := c.apply(&politeness.State{Learned: politeness.LearnCap}, now); err != nil {
		return usageError{err} // before anything is opened
	}
	return changing(st, c.Stores, func(ctx context.Context, k *app.Knowledge) error {
		state, _, err := k.Of(ctx, groups[0])
		if err != nil {
			return err
		}
		state.Clamp(now)
		state.Decay(now, politeness.HalfLife)
		if err := c.apply(&state, now); err != nil {
			return usageError{err}
		}
		if err := k.Set(ctx, groups[0], state); err != nil {
			return err
		}
		w := bufio.NewWriter(st.out)
		describe(w, groups[0], state, now)
		return w.Flush()
	})
}

// apply changes a state as the flags say; what they leave out stays.
func (c *domainsSetCmd) apply(state *politeness.State, now time.Time) error {
	if c.Delay != nil || c.Floor != nil {
		delay, floor := state.Learned, state.Floor
		if c.Delay != nil {
			delay = *c.Delay
			floor = min(floor, delay)
		}
		if c.Floor != nil {
			floor = *c.Floor
		}
		if err := state.Teach(now, delay, floor); err != nil {
			if c.Delay == nil {
				return fmt.Errorf("--floor: %w", err)
			}
			return fmt.Errorf("--delay: %w", err)
		}
	}
	if c.Block != nil {
		if err := state.Hold(now, *c.Block); err != nil {
			return fmt.Errorf("--block: %w", err)
		}
	}
	return nil
}

// changing opens what is known of hosts for a change.
func changing(st *streams, s config.Stores, f func(context.Context, *app.Knowledge) error) (err error) {
	if err := checkStores(&s); err != nil {
		return err
	}
	ctx := context.Background()
	k, err := app.OpenKnowledge(ctx, s)
	if err != nil && s.DatabaseURL == "" {
		return fmt.Errorf("%w\n  Nothing was changed. If a crawl is running in %s, wait for it or stop it first", err, shortPath(s.DataDir))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	remark, err := k.Grouped(ctx)
	if err != nil {
		return err
	}
	if remark != "" {
		fmt.Fprintln(st.err, remark)
	}
	return f(ctx, k)
}

// checkStores looks at addresses before anything is opened.
func checkStores(s *config.Stores) error {
	if err := s.Check(); err != nil {
		return usageError{err}
	}
	return nil
}

// groupNames reads what a person calls a host: a name with or without a port,
// a URL, or a pace group as it is listed (@name, an address).
func groupNames(list []string) ([]string, error) {
	var out []string
	for _, raw := range list {
		s := strings.TrimSpace(raw)
		if strings.HasPrefix(s, "@") {
			out = append(out, s)
			continue
		}
		if a, err := netip.ParseAddr(s); err == nil && a.Is6() {
			s = "[" + s + "]"
		}
		u, err := weburl.ParseSeed(s)
		if err != nil {
			return nil, usageErrorf("%q is not a host: %w; write something like example.com, 127.0.0.1:8080 or @name", raw, err)
		}
		out = append(out, u.HostKey())
	}
	return out, nil
}
