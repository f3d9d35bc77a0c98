package main

import (
	"context"
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
	return b.measureLiveAgent(ctx, s, what, aim)
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
	}, s.agent, s.server.process)
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
// then while each account changes once a second.
func (b *bench) measureLiveAgent(ctx context.Context, s *simulation, what string, aim float64) error {
	idle, err := s.cpuDuring(func() error { return sleep(ctx, 30*time.Second) })
	if err != nil {
		return err
	}
	stopProfiling := b.profile(ctx, s.agent, 50*time.Second)
	before := s.Steps()
	busy, err := s.cpuDuring(func() error {
		churn, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		s.Churn(churn, 1)
		return context.Cause(ctx)
	})
	changes := s.Steps() - before
	if err := stopProfiling(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	u, err := s.agent.usage()
	if err != nil {
		return err
	}
	b.table.add(row{measure: what + ", memory", target: fmt.Sprintf("%.0f MiB", aim), result: u.memory(),
		ratio:  percentOfTarget(float64(u.RSS)/mib, aim) + ", peak " + percentOfTarget(float64(u.Peak)/mib, aim),
		remark: fmt.Sprintf("%.2f MiB an account", float64(u.RSS)/mib/float64(len(s.accounts)))})
	perChange := busy / time.Duration(changes)
	b.table.add(row{measure: what + ", processor time of a change", target: "150 µs", result: fmt.Sprintf("%d µs", perChange.Microseconds()),
		ratio: percentOfTarget(float64(perChange.Microseconds()), 150),
		remark: fmt.Sprintf("one change a second and account for a minute, %d in all: %s; while nothing changes, %s in 30 s", changes,
			seconds(busy), seconds(idle))})
	return nil
}

// cpuDuring returns how much processor time the agent used while a function ran.
func (s *simulation) cpuDuring(run func() error) (time.Duration, error) {
	before, err := s.agent.usage()
	if err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	after, err := s.agent.usage()
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
