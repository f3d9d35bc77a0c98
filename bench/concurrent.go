package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet"
)

// concurrency is how many operations start at once, and over how many agents.
const concurrency, agentCount = 1000, 20

// concurrentOperation is one of many operations, with the object that its outcome must have.
type concurrentOperation struct {
	operator *operator
	body     operationBody
	want     vedette.Object
}

// operationsConcurrent starts many operations at once, on agents with one simulated cluster
// each, and checks that each outcome has the right object.
func (b *bench) operationsConcurrent(ctx context.Context) error {
	s, err := b.simulateWithoutAgent(ctx,
		fleet.Config{Clusters: agentCount, Objects: map[vedette.Kind]int{configMaps: concurrency / agentCount}})
	if err != nil {
		return err
	}
	defer s.stop()
	for _, a := range s.accounts {
		agent, err := b.startAgent(s.server.grpc, a)
		if err != nil {
			return err
		}
		defer agent.stop()
	}
	if _, err := s.server.awaitCount(ctx, "", s.objects(), 50*time.Millisecond); err != nil {
		return err
	}
	for _, verb := range []string{"get", "patch"} {
		if err := b.measureConcurrent(ctx, verb, newConcurrentOperations(s, verb)); err != nil {
			return err
		}
	}
	return nil
}

// newConcurrentOperations returns one operation for each object of each cluster.
func newConcurrentOperations(s *simulation, verb string) (ops []concurrentOperation) {
	shared := newOperator(s.server, "", concurrency)
	for i, a := range s.accounts {
		perAccount := shared.forAccount(a.name)
		for o := range s.Cluster(i).Objects(configMaps) {
			ops = append(ops, concurrentOperation{perAccount, simulatedOperation(verb, o.Key), o})
		}
	}
	rand.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	return ops
}

// simulatedOperation returns an operation that a simulated cluster supports.
func simulatedOperation(verb string, key vedette.Key) operationBody {
	if verb == "patch" {
		return testObject{key: key}.operation(verb, "type", "merge", "patch", json.RawMessage(annotation))
	}
	return testObject{key: key}.operation(verb)
}

// measureConcurrent runs all operations at once, three times, and reports the median.
func (b *bench) measureConcurrent(ctx context.Context, verb string, ops []concurrentOperation) error {
	var whole, each []time.Duration
	for range 3 {
		began := time.Now()
		durations, err := runConcurrently(ctx, ops)
		if err != nil {
			return err
		}
		whole, each = append(whole, time.Since(began)), append(each, durations...)
	}
	total := quantiles(whole)
	b.table.add(row{measure: fmt.Sprintf("operations at once: %d %s over %d agents, until the last is answered", len(ops), verb, agentCount),
		result: fmt.Sprintf("%.0f ms", ms(total.p50)),
		remark: fmt.Sprintf("each %s; %.0f a second; longest of 3 rounds %.0f ms; each was answered with its own object",
			quantiles(each), float64(len(ops))/total.p50.Seconds(), ms(total.longest))})
	return nil
}

func runConcurrently(ctx context.Context, ops []concurrentOperation) ([]time.Duration, error) {
	durations := make([]time.Duration, len(ops))
	group, ctx := errgroup.WithContext(ctx)
	for i, e := range ops {
		group.Go(func() error {
			out, took, err := e.operator.operate(ctx, e.body)
			durations[i] = took
			if err != nil {
				return err
			}
			return e.check(out)
		})
	}
	return durations, group.Wait()
}

// check returns an error if the outcome is that of another operation.
func (o concurrentOperation) check(result outcome) error {
	if len(result.Objects) != 1 {
		return fmt.Errorf("%s of %s on %s: got %d objects, want 1", o.body["verb"], o.want.Key, o.operator.account, len(result.Objects))
	}
	if metadata := result.Objects[0].Metadata; metadata.UID != o.want.UID || metadata.Name != o.want.Key.Name ||
		metadata.Namespace != o.want.Key.Namespace {
		return fmt.Errorf("%s of %s on %s: got object %s/%s with uid %s", o.body["verb"], o.want.Key, o.operator.account, metadata.Namespace,
			metadata.Name, metadata.UID)
	}
	return nil
}
