package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

var deployments = vedette.Kind{Group: "apps", Name: "Deployment"}

// operations measures what an operation costs: each by itself, a thousand at
// once, and while the same agent reads its cluster for the first time.
func operations(ctx context.Context, b *bench) error {
	for _, part := range []func(context.Context) error{b.operationsAlone, b.operationsAtOnce, b.operationsDuringSync} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rounds is how often each operation is made in each way, but for kubectl, which
// takes a hundred times as long.
const rounds, kubectlRounds = 300, 20

// warming is how many rounds don't count: connections are made in them, and the
// agent reads what the cluster serves.
const warming = 5

// way is one way to have a deed done.
type way struct {
	name string
	do   func(context.Context, deed, *subject) (time.Duration, error)
}

// operationsAlone makes one operation after the other in a real cluster, in
// three ways that take turns.
func (b *bench) operationsAlone(ctx context.Context) error {
	c, err := b.startCluster(ctx, map[vedette.Kind]int{deployments: filling, configMaps: filling})
	if err != nil {
		return err
	}
	defer c.Stop()
	srv, err := b.startServer(ctx, "")
	if err != nil {
		return err
	}
	defer srv.stop()
	agent, err := b.startAgent(srv.grpc, account{"real", c.Kubeconfig(), c.names()})
	if err != nil {
		return err
	}
	defer agent.stop()
	if err := srv.awaitLive(ctx, agent); err != nil {
		return err
	}
	direct, err := b.startCalls(c.Kubeconfig())
	if err != nil {
		return err
	}
	defer direct.stop()
	ways := []way{{"vedette", newOperator(srv, "real", 1).carryOut}, {"direct", direct.make}, {"kubectl", b.kubectl(c)}}
	taken, err := b.takeTurns(ctx, c, ways)
	if err != nil {
		return err
	}
	b.tellOperations(taken)
	return nil
}

// filling is how many objects of each kind there are beside those that
// operations make.
const filling = 500

// takeTurns makes all deeds in all ways, round after round, and returns how long
// they took, by way and deed. Who begins changes with the round, so that whatever
// else the machine does hits all alike.
func (b *bench) takeTurns(ctx context.Context, c *cluster, ways []way) (map[string][]time.Duration, error) {
	taken := map[string][]time.Duration{}
	n := max(b.scale(rounds), kubectlRounds)
	for round := range warming + n {
		subjects, err := subjectsOf(c, round, len(ways))
		if err != nil {
			return nil, err
		}
		for _, d := range deeds {
			for i := range ways {
				i = (i + round) % len(ways)
				if ways[i].name == "kubectl" && round >= warming && round%(n/kubectlRounds) != 0 {
					continue
				}
				took, err := ways[i].do(ctx, d, subjects[i])
				if err != nil {
					return nil, fmt.Errorf("%s by %s, round %d: %w", d.name, ways[i].name, round, err)
				}
				if round >= warming {
					taken[ways[i].name+d.name] = append(taken[ways[i].name+d.name], took)
				}
			}
		}
	}
	return taken, nil
}

func (b *bench) tellOperations(taken map[string][]time.Duration) {
	for _, d := range deeds {
		ours, theirs, kubectl := quantiles(taken["vedette"+d.name]), quantiles(taken["direct"+d.name]), quantiles(taken["kubectl"+d.name])
		over50, over99 := max(0, ours.p50-theirs.p50), max(0, ours.p99-theirs.p99)
		b.table.add(row{measure: "operation: " + d.name, aim: "p50 3 ms, p99 15 ms over direct calls",
			result: fmt.Sprintf("p50 %.1f ms, p99 %.1f ms: %.1f and %.1f over", ms(ours.p50), ms(ours.p99), ms(over50), ms(over99)),
			ratio:  fmt.Sprintf("%s, %s; %s kubectl", ofAim(ms(over50), 3), ofAim(ms(over99), 15), ratio(ms(ours.p50), ms(kubectl.p50))),
			remark: fmt.Sprintf("direct (%s): p50 %.1f ms, p99 %.1f ms; kubectl: p50 %.0f ms, longest %.0f ms; %d rounds, kubectl %d",
				d.directly, ms(theirs.p50), ms(theirs.p99), ms(kubectl.p50), ms(kubectl.longest), ours.n, kubectl.n)})
	}
}

// quantile tells of many durations.
type quantile struct {
	p50, p99, longest time.Duration
	n                 int
}

func quantiles(taken []time.Duration) quantile {
	if len(taken) == 0 {
		return quantile{}
	}
	slices.Sort(taken)
	return quantile{taken[len(taken)/2], taken[len(taken)*99/100], taken[len(taken)-1], len(taken)}
}

func (q quantile) String() string {
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", ms(q.p50), ms(q.p99))
}
