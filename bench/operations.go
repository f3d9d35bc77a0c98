package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

var deployments = vedette.Kind{Group: "apps", Name: "Deployment"}

// operations measures operations: one at a time, a thousand at once, and during the first sync
// of the agent.
func operations(ctx context.Context, b *bench) error {
	for _, measure := range []func(context.Context) error{b.operationsSequential, b.operationsConcurrent, b.operationsDuringSync} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// operationRounds is how often each method runs each operation. kubectl runs fewer, because it
// takes a hundred times as long.
const operationRounds, kubectlRounds = 300, 20

// warmupRounds is how many rounds are not measured: clients connect in them, and the agent runs
// discovery.
const warmupRounds = 5

// clientMethod is one way to run an operation.
type clientMethod struct {
	name string
	do   func(context.Context, operationCase, *fixture) (time.Duration, error)
}

// operationsSequential runs one operation at a time in a real cluster. Three methods
// alternate.
func (b *bench) operationsSequential(ctx context.Context) error {
	c, err := b.startCluster(ctx, map[vedette.Kind]int{deployments: backgroundObjects, configMaps: backgroundObjects})
	if err != nil {
		return err
	}
	defer c.Stop()
	srv, err := b.startServer(ctx, "")
	if err != nil {
		return err
	}
	defer srv.stop()
	agent, err := b.startAgent(srv.grpc, account{"real", c.Kubeconfig(), c.kindNames()})
	if err != nil {
		return err
	}
	defer agent.stop()
	if err := srv.awaitLive(ctx, agent); err != nil {
		return err
	}
	direct, err := b.startDirectClient(c.Kubeconfig())
	if err != nil {
		return err
	}
	defer direct.stop()
	methods := []clientMethod{{"vedette", newOperator(srv, "real", 1).execute}, {"direct", direct.execute}, {"kubectl", b.runKubectl(c)}}
	durations, err := b.interleave(ctx, c, methods)
	if err != nil {
		return err
	}
	b.reportOperations(durations)
	return nil
}

// backgroundObjects is how many objects of each kind exist besides those of operations.
const backgroundObjects = 500

// interleave runs all operations with all methods in each round, and returns the durations by
// method and operation. Each round begins with another method, so that other load on the
// machine affects all methods equally.
func (b *bench) interleave(ctx context.Context, c *cluster, methods []clientMethod) (map[string][]time.Duration, error) {
	durations := map[string][]time.Duration{}
	n := max(b.scale(operationRounds), kubectlRounds)
	for round := range warmupRounds + n {
		fixtures, err := newFixtures(c, round, len(methods))
		if err != nil {
			return nil, err
		}
		for _, op := range operationCases {
			for i := range methods {
				i = (i + round) % len(methods)
				if methods[i].name == "kubectl" && round >= warmupRounds && round%(n/kubectlRounds) != 0 {
					continue
				}
				took, err := methods[i].do(ctx, op, fixtures[i])
				if err != nil {
					return nil, fmt.Errorf("%s by %s, round %d: %w", op.name, methods[i].name, round, err)
				}
				if round >= warmupRounds {
					durations[methods[i].name+op.name] = append(durations[methods[i].name+op.name], took)
				}
			}
		}
	}
	return durations, nil
}

func (b *bench) reportOperations(durations map[string][]time.Duration) {
	for _, op := range operationCases {
		ours := quantiles(durations["vedette"+op.name])
		theirs := quantiles(durations["direct"+op.name])
		kubectl := quantiles(durations["kubectl"+op.name])
		overhead50, overhead99 := max(0, ours.p50-theirs.p50), max(0, ours.p99-theirs.p99)
		b.table.add(row{measure: "operation: " + op.name, target: "p50 3 ms, p99 15 ms over direct calls",
			result: fmt.Sprintf("p50 %.1f ms, p99 %.1f ms: %.1f and %.1f over", ms(ours.p50), ms(ours.p99), ms(overhead50), ms(overhead99)),
			ratio: fmt.Sprintf("%s, %s; %s kubectl", percentOfTarget(ms(overhead50), 3), percentOfTarget(ms(overhead99), 15),
				ratio(ms(ours.p50), ms(kubectl.p50))),
			remark: fmt.Sprintf("direct (%s): p50 %.1f ms, p99 %.1f ms; kubectl: p50 %.0f ms, longest %.0f ms; %d rounds, kubectl %d",
				op.requestVerbs, ms(theirs.p50), ms(theirs.p99), ms(kubectl.p50), ms(kubectl.longest), ours.n, kubectl.n)})
	}
}

// quantileSummary summarizes durations.
type quantileSummary struct {
	p50, p99, longest time.Duration
	n                 int
}

func quantiles(durations []time.Duration) quantileSummary {
	if len(durations) == 0 {
		return quantileSummary{}
	}
	slices.Sort(durations)
	return quantileSummary{durations[len(durations)/2], durations[len(durations)*99/100], durations[len(durations)-1], len(durations)}
}

func (q quantileSummary) String() string {
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", ms(q.p50), ms(q.p99))
}
