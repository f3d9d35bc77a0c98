package convergence

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/faults"
)

// How many faults one seed has.
const (
	incidentCount = 10
	faultDuration = 14 * time.Second
)

// TestConvergence runs seeds on each database, and logs how long they took to converge. It has no
// limit on that beyond the timeout, because it depends on the machine.
func TestConvergence(t *testing.T) {
	t.Parallel() // because it waits most of the time
	var times convergenceTimes
	t.Cleanup(func() { t.Log(times.String()) })
	for i, name := range everyDatabase() {
		for _, seed := range seedsOf(int64(i)) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				times.add(runSeed(t, name, seed))
			})
		}
	}
}

// TestShardsConverge runs a seed on two databases over which accounts are spread.
func TestShardsConverge(t *testing.T) {
	t.Parallel()
	if *singleDB != "" && *singleDB != shards {
		t.Skip("runs on two databases only")
	}
	seed := cmp.Or(*singleSeed, *firstSeed)
	t.Logf("converged after %v", runSeed(t, shards, seed))
}

// seedsOf returns the seeds to run on the database with an index. Each database has others, because
// what fails depends on the seed only.
func seedsOf(database int64) (seeds []int64) {
	if *singleSeed != 0 {
		return []int64{*singleSeed}
	}
	n := *seedCount
	for i := range n {
		seeds = append(seeds, *firstSeed+database*n+i)
	}
	return seeds
}

// runSeed runs one seed with random faults.
func runSeed(t *testing.T, name string, seed int64) time.Duration {
	return runWorld(t, name, seed, randomTopology(newRand(seed, 0)), func(parts []faults.Part) []faults.Incident {
		return faults.Schedule(newRand(seed, 2), parts, incidentCount, faultDuration)
	})
}

// newRand returns a random generator. The parts of a world have generators of their own, so that the
// speed of one part does not change the others.
func newRand(seed int64, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(seed), stream))
}

// runWorld runs a world with the faults that plan returns. It returns how long the world took to
// converge after all faults had ended.
func runWorld(t *testing.T, name string, seed int64, s topology, plan func(parts []faults.Part) []faults.Incident) time.Duration {
	s.verify = 10
	t.Logf("seed %d on %s: %+v", seed, name, s)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("run again: go test ./test/convergence -run Convergence -seed %d -db %s -skew %v -v", seed, name, *skew)
		}
	})
	w := newWorld(t, newDatabase(t, name), s)
	loads := w.workloads(newRand(seed, 1), s)
	operations := w.newOperationLoad(w.accounts[0])
	incidents := plan(w.parts())
	restoredParts := map[string]bool{}
	for _, i := range incidents {
		t.Log(i)
		if i.Fault.Name == restored {
			restoredParts[i.Part] = true
		}
		operations.historyMayBeLost = operations.historyMayBeLost || strings.Contains(i.Part, "database") || i.Part == "disk"
	}
	var terms []string
	watching, stop := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() { terms = w.checkTerms(watching) })
	defer watcher.Wait()
	defer stop()
	w.injectFaults(incidents, loads, operations)
	took := w.awaitConvergence()
	w.awaitVerified()
	for _, a := range w.accounts {
		if !restoredParts[a.cluster.name] {
			w.checkNoDrift(a)
		}
	}
	operations.clusterMayBeRestored = len(restoredParts) > 0
	ended := operations.verify()
	operations.checkStrays()
	stop()
	watcher.Wait()
	granted, duplicates := w.grantedTerms()
	for _, problem := range append(terms, duplicates...) {
		t.Error(problem)
	}
	changes := 0
	for _, l := range loads {
		changes += l.changes
	}
	t.Logf("seed %d on %s: converged %.1fs after the last fault; %d changes, %d terms, operations %v", seed, name, took.Seconds(), changes, granted, ended)
	return took
}

func (w *world) workloads(rng *rand.Rand, s topology) []*workload {
	var loads []*workload
	for _, c := range w.clusters {
		l := &workload{cluster: c, rng: rand.New(rand.NewPCG(rng.Uint64(), 0)), controllers: s.controllers}
		if rng.IntN(2) == 0 {
			l.kindsUntil = time.Duration(rng.Int64N(int64(faultDuration)))
		}
		if err := l.prepare(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		loads = append(loads, l)
	}
	return loads
}

// injectFaults runs a schedule of faults while clusters change and operations are sent, and then
// heals everything.
func (w *world) injectFaults(plan []faults.Incident, loads []*workload, e *operationLoad) {
	ctx, stop := context.WithCancel(w.t.Context())
	var work sync.WaitGroup
	work.Go(func() { e.run(ctx) })
	for _, l := range loads {
		work.Go(func() { l.run(ctx) })
	}
	faults.RunAll(w.t.Context(), plan, func(err error) { w.t.Error(err) })
	stop()
	work.Wait()
}
