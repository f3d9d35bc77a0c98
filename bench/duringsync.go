package main

import (
	"context"
	"fmt"
	gosync "sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet"
)

// operationsDuringSync measures operations in an account during its first sync, and again when
// it is idle.
func (b *bench) operationsDuringSync(ctx context.Context) error {
	s, err := b.simulateWithoutAgent(ctx, fleet.Config{Objects: mixedKinds(b.scale(50000))})
	if err != nil {
		return err
	}
	defer s.stop()
	srv := s.server
	account := s.accounts[0]
	cluster := s.Cluster(0)
	began := time.Now()
	agent, err := b.startAgent(srv.grpc, account)
	if err != nil {
		return err
	}
	defer agent.stop()
	t := &steadyLoad{operator: newOperator(srv, account.name, 64), durations: map[string][]time.Duration{}}
	for o := range cluster.Objects(configMaps) {
		t.keys = append(t.keys, o.Key)
	}
	err = await(ctx, "the first operation", 5*time.Millisecond, func() (bool, error) {
		_, _, err := t.operator.operate(ctx, simulatedOperation("get", t.keys[0]))
		return err == nil, err
	}, agent)
	if err != nil {
		return err
	}
	syncing, synced := context.WithCancel(ctx)
	defer synced()
	remark := ""
	go func() {
		defer synced()
		if at, err := srv.awaitCount(syncing, account.name, cluster.Count(), 100*time.Millisecond); err == nil {
			remark = fmt.Sprintf("; %d objects in %s", cluster.Count(), seconds(at.Sub(began)))
		}
	}()
	during, err := t.run(syncing)
	if err != nil {
		return err
	}
	if err := srv.awaitLive(ctx, agent); err != nil {
		return err
	}
	idle, end := context.WithTimeout(ctx, max(10*time.Second, time.Duration(b.scale(10))*time.Second))
	defer end()
	whenIdle, err := t.run(idle)
	if err != nil {
		return err
	}
	b.reportDuringSync(during, whenIdle, remark)
	return nil
}

func (b *bench) reportDuringSync(during, whenIdle map[string]quantileSummary, remark string) {
	for _, verb := range []string{"get", "patch"} {
		b.table.add(row{measure: fmt.Sprintf("operation: %s, %d a second, while the account is first synced", verb, operationsPerSecond/2),
			result: during[verb].String(),
			ratio:  ratio(ms(during[verb].p50), ms(whenIdle[verb].p50)) + ", " + ratio(ms(during[verb].p99), ms(whenIdle[verb].p99)) + " idle",
			remark: fmt.Sprintf("%d operations, longest %.0f ms; idle: %s of %d%s", during[verb].n, ms(during[verb].longest), whenIdle[verb],
				whenIdle[verb].n, remark)})
	}
}

// operationsPerSecond is how many operations a steadyLoad starts in a second.
const operationsPerSecond = 50

// steadyLoad starts operations at a fixed rate even if earlier ones have not ended, so that a
// stall also shows in the durations of the operations after it.
type steadyLoad struct {
	operator  *operator
	keys      []vedette.Key
	mu        gosync.Mutex
	durations map[string][]time.Duration // by verb
}

// run starts gets and patches alternately until ctx ends, and waits for all of them.
func (t *steadyLoad) run(ctx context.Context) (map[string]quantileSummary, error) {
	t.durations = map[string][]time.Duration{}
	group, running := errgroup.WithContext(context.WithoutCancel(ctx))
	tick := time.NewTicker(time.Second / operationsPerSecond)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil && running.Err() == nil; n++ {
		<-tick.C
		verb := []string{"get", "patch"}[n%2]
		group.Go(func() error {
			_, took, err := t.operator.operate(running, simulatedOperation(verb, t.keys[n/2%len(t.keys)]))
			t.mu.Lock()
			defer t.mu.Unlock()
			t.durations[verb] = append(t.durations[verb], took)
			return err
		})
	}
	err := group.Wait()
	return map[string]quantileSummary{"get": quantiles(t.durations["get"]), "patch": quantiles(t.durations["patch"])}, err
}
