package main

import (
	"context"
	"fmt"
	"time"

	"github.com/vedette-io/vedette/test/fleet"
)

const (
	// verificationInterval is how often each feed is verified while that is measured, in seconds.
	verificationInterval = 15
	// verificationTime is how long it is measured.
	verificationTime = 30 * time.Second
)

// verification measures what it costs to verify 100 accounts of 1,000 objects, while nothing
// changes.
func verification(ctx context.Context, b *bench) error {
	accounts := b.scale(100)
	without, err := b.costOfVerification(ctx, accounts, 0)
	if err != nil {
		return err
	}
	with, err := b.costOfVerification(ctx, accounts, verificationInterval)
	if err != nil {
		return err
	}
	const listsPerVerification = 2 // one of an object, and one of all
	rounds := float64(with.counts.Lists-without.counts.Lists) / listsPerVerification / float64(accounts*10)
	agent, server := perRound(with.agent-without.agent, rounds), perRound(with.server-without.server, rounds)
	what := fmt.Sprintf("verification of %d accounts with 1000 objects each", accounts)
	share := 100 * (agent + server).Seconds() / time.Hour.Seconds()
	b.table.add(row{measure: what + ", processor time", target: "1 % of a core", result: fmt.Sprintf("%.3f %%", share), ratio: percentOfTarget(share, 1),
		remark: fmt.Sprintf("at one verification an hour: agent %s, server %s each time; measured over %.1f", seconds(agent), seconds(server), rounds)})
	b.table.add(row{measure: what + ", load of API servers", result: fmt.Sprintf("%.1f MiB", float64(with.counts.Bytes-without.counts.Bytes)/rounds/mib),
		remark: fmt.Sprintf("%d requests each time, %d of them of one object", accounts*10*listsPerVerification, accounts*10)})
	return nil
}

func perRound(d time.Duration, rounds float64) time.Duration {
	return time.Duration(float64(d) / rounds)
}

// verificationCost is what an agent and its server used.
type verificationCost struct {
	agent, server time.Duration
	counts        fleet.Counts
}

func (b *bench) costOfVerification(ctx context.Context, accounts, interval int) (c verificationCost, err error) {
	cfg := fleet.Config{Clusters: accounts, Objects: evenKinds(100)}
	s, err := b.simulateWithoutAgent(ctx, cfg)
	if err != nil {
		return c, err
	}
	defer s.stop()
	s.agent, err = b.startVerifyingAgent(interval, s.server.grpc, s.accounts...)
	if err != nil {
		return c, err
	}
	if _, err := s.awaitAccountsLive(ctx, len(kindNames(cfg.Objects))); err != nil {
		return c, err
	}
	before := s.Counts()
	c.agent, err = s.agent.cpuDuring(func() (err error) {
		c.server, err = s.server.program.cpuDuring(func() error { return sleep(ctx, verificationTime) })
		return err
	})
	c.counts = s.Counts().Minus(before)
	return c, err
}
