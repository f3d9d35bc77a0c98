package convergence

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// How much goes wrong in one seed.
const (
	incidents = 10
	troubled  = 14 * time.Second
)

// TestConvergence runs seeds on each database, and tells how long they took to
// converge. How long that may be is for people to judge, who know the machine.
func TestConvergence(t *testing.T) {
	var times healing
	t.Cleanup(func() { t.Log(times.String()) })
	first, n := *firstOne, *seeds
	if *oneSeed != 0 {
		first, n = *oneSeed, 1
	}
	for _, name := range everyDatabase() {
		for seed := first; seed < first+n; seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel() // most of the time is spent waiting
				times.add(converge(t, name, seed))
			})
		}
	}
}

// converge runs one seed. Its parts draw from generators of their own, so that
// how fast one goes changes nothing for the others. It returns how long it took to
// converge once all was healed.
func converge(t *testing.T, name string, seed int64) time.Duration {
	draws := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), stream)) }
	s := shapeOf(draws(0))
	t.Logf("seed %d on %s: %+v", seed, name, s)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again: go test ./test/convergence -run Convergence -seed %d -db %s -skew %v -v", seed, name, *skew)
		}
	})
	w := newWorld(t, makers[name](t), s)
	loads := w.workloads(draws(1), s)
	errands := w.errandsOf(w.accounts[0])
	plan := schedule(draws(2), w.parts(), incidents, troubled)
	for _, i := range plan {
		t.Log(i)
		errands.forgetful = errands.forgetful || strings.Contains(i.part, "database") || i.part == "disk"
	}
	var terms []string
	watching, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { terms = w.watchTerms(watching) })
	defer watch.Wait()
	defer stop()
	w.trouble(plan, loads, errands)
	took := w.settle()
	ended := errands.judge()
	stop()
	watch.Wait()
	given, twice := w.termsGiven()
	for _, each := range append(terms, twice...) {
		t.Error(each)
	}
	changes := 0
	for _, l := range loads {
		changes += l.changes
	}
	t.Logf("seed %d on %s: converged %.1fs after all was healed; %d changes, %d terms, operations %v", seed, name, took.Seconds(), changes, given, ended)
	return took
}

func (w *world) workloads(rng *rand.Rand, s shape) []*workload {
	var loads []*workload
	for _, c := range w.clusters {
		l := &workload{cluster: c, rng: rand.New(rand.NewPCG(rng.Uint64(), 0)), controllers: s.controllers}
		if err := l.prepare(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		loads = append(loads, l)
	}
	return loads
}

// trouble lets a schedule happen while clusters change and operations are sent, and
// heals all.
func (w *world) trouble(plan []incident, loads []*workload, e *errands) {
	ctx, stop := context.WithCancel(w.t.Context())
	var work, trouble sync.WaitGroup
	work.Go(func() { e.run(ctx) })
	for _, l := range loads {
		work.Go(func() { l.run(ctx) })
	}
	began := time.Now()
	last := map[string]chan struct{}{} // by part: closed when its last incident has ended
	for _, i := range plan {
		before, done := last[i.part], make(chan struct{})
		last[i.part] = done
		trouble.Go(func() {
			defer close(done)
			idle(ctx, i.at-time.Since(began))
			if before != nil {
				<-before // a start may take longer than planned
			}
			w.happen(i)
		})
	}
	trouble.Wait()
	stop()
	work.Wait()
}

func (w *world) happen(i incident) {
	ctx := w.t.Context()
	err := i.fault.begin(ctx)
	if err == nil && i.fault.end != nil {
		idle(ctx, i.lasts)
		err = i.fault.end(ctx)
	}
	if err != nil {
		w.t.Errorf("%s %s: %v", i.part, i.fault.name, err)
	}
}
