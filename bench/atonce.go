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

// atOnce is how many operations are begun at once, over as many agents.
const atOnce, agents = 1000, 20

// errand is one of many operations: what is asked for, of whom, and which object
// must be in the answer.
type errand struct {
	operator *operator
	ask      members
	want     vedette.Object
}

// operationsAtOnce begins many operations at once on agents with a simulated
// cluster each, and checks that each is answered with its own object.
func (b *bench) operationsAtOnce(ctx context.Context) error {
	s, err := b.simulateWithoutAgent(ctx, fleet.Config{Clusters: agents, Objects: map[vedette.Kind]int{configMaps: atOnce / agents}})
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
		if err := b.rush(ctx, verb, errandsOf(s, verb)); err != nil {
			return err
		}
	}
	return nil
}

// errandsOf makes one errand for each object of each cluster.
func errandsOf(s *simulation, verb string) (errands []errand) {
	shared := newOperator(s.server, "", atOnce)
	for i, a := range s.accounts {
		of := shared.on(a.name)
		for o := range s.Cluster(i).Objects(configMaps) {
			errands = append(errands, errand{of, simulatedAsk(verb, o.Key), o})
		}
	}
	rand.Shuffle(len(errands), func(i, j int) { errands[i], errands[j] = errands[j], errands[i] })
	return errands
}

// simulatedAsk is an operation that a simulated cluster can answer.
func simulatedAsk(verb string, key vedette.Key) members {
	if verb == "patch" {
		return desired{key: key}.aim(verb, "type", "merge", "patch", json.RawMessage(annotation))
	}
	return desired{key: key}.aim(verb)
}

// rush runs all errands at once, three times, and tells of the median.
func (b *bench) rush(ctx context.Context, verb string, errands []errand) error {
	var whole, each []time.Duration
	for range 3 {
		began := time.Now()
		taken, err := allAtOnce(ctx, errands)
		if err != nil {
			return err
		}
		whole, each = append(whole, time.Since(began)), append(each, taken...)
	}
	total := quantiles(whole)
	b.table.add(row{measure: fmt.Sprintf("operations at once: %d %s over %d agents, until the last is answered", len(errands), verb, agents),
		result: fmt.Sprintf("%.0f ms", ms(total.p50)), remark: fmt.Sprintf("each %s; %.0f a second; longest of 3 rounds %.0f ms; each was answered with its own object",
			quantiles(each), float64(len(errands))/total.p50.Seconds(), ms(total.longest))})
	return nil
}

func allAtOnce(ctx context.Context, errands []errand) ([]time.Duration, error) {
	taken := make([]time.Duration, len(errands))
	group, ctx := errgroup.WithContext(ctx)
	for i, e := range errands {
		group.Go(func() error {
			out, took, err := e.operator.operate(ctx, e.ask)
			taken[i] = took
			if err != nil {
				return err
			}
			return e.check(out)
		})
	}
	return taken, group.Wait()
}

// check refuses an answer that is another operation's.
func (e errand) check(out told) error {
	if len(out.Objects) != 1 {
		return fmt.Errorf("%s of %s on %s is answered with %d objects", e.ask["verb"], e.want.Key, e.operator.account, len(out.Objects))
	}
	if got := out.Objects[0].Metadata; got.UID != e.want.UID || got.Name != e.want.Key.Name || got.Namespace != e.want.Key.Namespace {
		return fmt.Errorf("%s of %s on %s is answered with %s/%s, uid %s", e.ask["verb"], e.want.Key, e.operator.account, got.Namespace, got.Name, got.UID)
	}
	return nil
}
