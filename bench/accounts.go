package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/vedette-io/vedette/test/fleet"
)

// objectsPerKind gives an account 400 objects of 10 kinds.
const objectsPerKind = 40

// manyAccounts measures one agent that serves hundreds of simulated clusters.
func manyAccounts(ctx context.Context, b *bench) error {
	for _, size := range []struct {
		accounts int
		aim      float64 // MiB
	}{{500, 350}, {1000, 650}} {
		if err := b.agentOfAccounts(ctx, b.scale(size.accounts), size.aim); err != nil {
			return fmt.Errorf("%d accounts: %w", size.accounts, err)
		}
	}
	return nil
}

// agentOfAccounts measures an agent of so many accounts: its first sync, its memory and its
// processor time.
func (b *bench) agentOfAccounts(ctx context.Context, accounts int, aim float64) error {
	cfg := fleet.Config{Clusters: accounts, Objects: evenKinds(objectsPerKind)}
	s, err := b.simulateWithoutAgent(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.stop()
	began := time.Now()
	s.agent, err = b.startAgent(s.server.grpc, s.accounts...)
	if err != nil {
		return err
	}
	sync, err := s.awaitAccountsLive(ctx, len(kindNames(cfg.Objects)))
	if err != nil {
		return err
	}
	objects := s.objects()
	if _, err := s.server.awaitCount(ctx, "", objects, 50*time.Millisecond, s.agent); err != nil {
		return err
	}
	synced, err := s.agent.usage()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d accounts, 10 kinds each, %d objects", accounts, objects)
	b.table.add(row{measure: what + ", first sync", result: fmt.Sprintf("all live after %s, the first after %s",
		seconds(sync.all.Sub(began)), seconds(sync.first.Sub(began))), remark: synced.cpu() + ", " + synced.memory()})
	perChange, err := b.measureLiveAgent(ctx, s, what, aim)
	if err != nil {
		return err
	}
	s.agent.stop()
	return b.measureWatching(ctx, s, what, perChange)
}

// accountsLive is when the first account was live, and all of them.
type accountsLive struct{ first, all time.Time }

// awaitAccountsLive waits until so many feeds of each account are live at the same time.
func (s *simulation) awaitAccountsLive(ctx context.Context, feeds int) (accountsLive, error) {
	var when accountsLive
	err := await(ctx, "all accounts to be live", 500*time.Millisecond, func() (bool, error) {
		live, err := s.server.liveAccounts(ctx, feeds)
		if live > 0 && when.first.IsZero() {
			when.first = time.Now()
		}
		return live == len(s.accounts), err
	}, s.agent, s.server.program)
	when.all = time.Now()
	return when, err
}

// liveAccounts returns how many accounts have so many feeds, all of them live.
func (s *server) liveAccounts(ctx context.Context, feeds int) (n int, err error) {
	var page struct {
		Items []struct{ Feeds map[string]int }
	}
	if err := s.get(ctx, "/vedette/v1/accounts", url.Values{"limit": {"5000"}}, &page); err != nil {
		return 0, err
	}
	for _, a := range page.Items {
		if len(a.Feeds) == 1 && a.Feeds["live"] == feeds {
			n++
		}
	}
	return n, nil
}

// measureLiveAgent measures an agent whose accounts are live, first while nothing changes, and
// then while each account changes once a second. It returns the processor time of a change.
func (b *bench) measureLiveAgent(ctx context.Context, s *simulation, what string, aim float64) (time.Duration, error) {
	stopProfiling := func() error { return nil }
	cost, err := b.costOfChanges(ctx, s, s.agent, func() { stopProfiling = b.profile(ctx, s.agent, 50*time.Second) })
	if err := errors.Join(err, stopProfiling()); err != nil {
		return 0, err
	}
	u, err := s.agent.usage()
	if err != nil {
		return 0, err
	}
	b.table.add(row{measure: what + ", memory", target: fmt.Sprintf("%.0f MiB", aim), result: u.memory(),
		ratio:  percentOfTarget(float64(u.RSS)/mib, aim) + ", peak " + percentOfTarget(float64(u.Peak)/mib, aim),
		remark: fmt.Sprintf("%.2f MiB an account", float64(u.RSS)/mib/float64(len(s.accounts)))})
	b.table.add(row{measure: what + ", processor time of a change", target: "150 µs", result: fmt.Sprintf("%d µs", cost.perChange().Microseconds()),
		ratio: percentOfTarget(float64(cost.perChange().Microseconds()), 150), remark: "one change a second and account for a minute, " + cost.String()})
	return cost.perChange(), nil
}

// measureWatching measures a client that only watches the same clusters.
func (b *bench) measureWatching(ctx context.Context, s *simulation, what string, ofAgent time.Duration) error {
	p, err := b.startWatchAndDiscard(ctx, s.accounts)
	if p != nil {
		defer p.stop()
	}
	if err != nil {
		return err
	}
	cost, err := b.costOfChanges(ctx, s, p, func() {})
	if err != nil {
		return err
	}
	b.table.add(row{measure: what + ", processor time of a change in a client that discards it", result: fmt.Sprintf("%d µs", cost.perChange().Microseconds()),
		ratio: "agent " + ratio(float64(ofAgent), float64(cost.perChange())), remark: cost.String()})
	return nil
}

// changeCost is the processor time that a process used.
type changeCost struct {
	idle    time.Duration // in 30 s without changes
	busy    time.Duration // in a minute with changes
	changes int
}

func (c changeCost) perChange() time.Duration { return c.busy / time.Duration(c.changes) }

func (c changeCost) String() string {
	return fmt.Sprintf("%d in all: %s; while nothing changes, %s in 30 s", c.changes, seconds(c.busy), seconds(c.idle))
}

// costOfChanges measures a process while nothing changes, and then while each account changes once a
// second. It calls begin between the two.
func (b *bench) costOfChanges(ctx context.Context, s *simulation, p *program, begin func()) (c changeCost, err error) {
	c.idle, err = p.cpuDuring(func() error { return sleep(ctx, 30*time.Second) })
	if err != nil {
		return c, err
	}
	begin()
	before := s.Steps()
	c.busy, err = p.cpuDuring(func() error {
		churn, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		s.Churn(churn, 1)
		return context.Cause(ctx)
	})
	c.changes = s.Steps() - before
	return c, err
}

// cpuDuring returns how much processor time a process used while a function ran.
func (p *program) cpuDuring(run func() error) (time.Duration, error) {
	before, err := p.usage()
	if err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	after, err := p.usage()
	return after.CPU - before.CPU, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
