package main

import (
	"context"
	"fmt"
	"time"

	"github.com/vedette-io/vedette/test/fleet"
)

// resume measures what it costs to resume after a broken connection, a restart of the agent and
// a restart of the server, each with a hundred changes in between.
func resume(ctx context.Context, b *bench) error {
	cfg := fleet.Config{Objects: mixedKinds(b.scale(12000))}
	var p *proxy
	s, err := b.simulate(ctx, cfg, func(to string) (address string, err error) {
		p, err = newProxy(to)
		if err != nil {
			return "", err
		}
		return p.address(), nil
	})
	if s != nil {
		defer s.stop()
	}
	if err != nil {
		return err
	}
	defer p.close()
	if err := s.server.awaitLive(ctx, s.agent); err != nil {
		return err
	}
	accounts, err := b.writeAccounts(s.Fleet, cfg.Objects)
	if err != nil {
		return err
	}
	first := resumeCost{s.Counts(), p.up.Load(), p.down.Load()}
	b.table.add(row{measure: "first sync, to compare with", result: first.wire(), remark: first.api()})
	for _, c := range []struct {
		what string
		do   func() error
	}{
		{"a cut connection", func() error { p.cut(); s.Step(100); return nil }},
		{"a restart of the agent", func() (err error) {
			s.agent.stop()
			s.Step(100)
			s.agent, err = b.startAgent(p.address(), accounts...)
			return err
		}},
		{"a restart of the server", func() error {
			s.server.stop()
			s.Step(100)
			return b.runServer(ctx, s.server)
		}},
	} {
		if err := b.resumeAfter(ctx, s, p, c.what, c.do, first); err != nil {
			return fmt.Errorf("resume after %s: %w", c.what, err)
		}
	}
	return nil
}

// resumeCost has the requests to the API server, and the bytes between the agent and the server.
type resumeCost struct {
	fleet.Counts
	up, down int64
}

func (c resumeCost) wire() string {
	return fmt.Sprintf("%.1f kB up, %.1f kB down", float64(c.up)/1e3, float64(c.down)/1e3)
}

func (c resumeCost) api() string {
	return fmt.Sprintf("API server: %d lists, %d watches, %d gets, %.1f kB", c.Lists, c.Watches, c.Gets, float64(c.Bytes)/1e3)
}

func (b *bench) resumeAfter(ctx context.Context, s *simulation, p *proxy, what string, do func() error, firstSyncCost resumeCost) error {
	before, began := resumeCost{s.Counts(), p.up.Load(), p.down.Load()}, time.Now()
	if err := do(); err != nil {
		return err
	}
	if err := s.awaitEqual(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	if err := s.server.awaitLive(ctx, s.agent); err != nil {
		return err
	}
	c := resumeCost{s.Counts().Minus(before.Counts), p.up.Load() - before.up, p.down.Load() - before.down}
	b.table.add(row{measure: "resume after " + what + ", 100 changes", target: "no list",
		result: fmt.Sprintf("%s, in %s", c.wire(), seconds(took)),
		ratio:  ratio(float64(c.up), float64(firstSyncCost.up)) + " first sync", remark: c.api()})
	return nil
}

// awaitEqual waits until the server returns each object of the first cluster in its current
// version.
func (s *simulation) awaitEqual(ctx context.Context) error {
	want := map[string]string{}
	for kind := range s.Cluster(0).Kinds() {
		for o := range s.Cluster(0).Objects(kind) {
			want[o.UID] = o.ResourceVersion
		}
	}
	return await(ctx, "the store to equal the cluster", 20*time.Millisecond, func() (bool, error) {
		if n, err := s.server.count(ctx, ""); err != nil || n != len(want) {
			return false, err
		}
		return s.server.equals(ctx, want)
	}, s.agent, s.server.program)
}
