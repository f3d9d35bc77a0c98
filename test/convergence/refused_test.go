package convergence

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestDatabaseAnswersErrors has the database answer statements with each of its own
// errors in turn, while the cluster changes. None of them is an object's fault: all
// changes are there in the end, and none was left out on the way.
func TestDatabaseAnswersErrors(t *testing.T) {
	t.Parallel() // it waits most of the time
	names := everyDatabase()
	if *oneDB == "" {
		names = []string{"mariadb", "postgres"}
	}
	on(t, names, lone, func(t *testing.T, w *world) {
		w.changing(func(ctx context.Context) {
			for i, code := range w.db.errors {
				w.db.refuser.Answer(code, 1+i%4)
				idle(ctx, 700*time.Millisecond)
				w.db.refuser.Heal()
				idle(ctx, 300*time.Millisecond)
			}
		})
		w.settle()
		w.leftNothingOut(t)
		t.Logf("%d statements were answered with errors", w.db.refuser.Refused())
	})
}

// TestSlowDatabases freezes what keeps the data for longer than a statement may take.
func TestSlowDatabases(t *testing.T) {
	t.Parallel() // it waits most of the time
	const long = 17 * time.Second
	on(t, everyDatabase(), lone, func(t *testing.T, w *world) {
		w.changing(func(ctx context.Context) {
			if w.db.pause != nil {
				w.db.pause()
				idle(ctx, long)
				w.db.resume()
				return
			}
			w.server.pause() // as a disk that hangs would
			idle(ctx, long)
			w.server.resume()
			must(t, w.db.lock(ctx))
			idle(ctx, long/3)
			must(t, w.db.unlock(ctx))
		})
		w.settle()
		w.leftNothingOut(t)
	})
}

// changing does something while the first cluster changes.
func (w *world) changing(do func(ctx context.Context)) {
	ctx, stop := context.WithCancel(w.t.Context())
	load := &workload{cluster: w.clusters[0], rng: rand.New(rand.NewPCG(11, 11)), calm: true}
	var work sync.WaitGroup
	work.Go(func() { load.run(ctx) })
	do(ctx)
	stop()
	work.Wait()
}

// leftNothingOut holds that the server took each object for one that can be stored.
func (w *world) leftNothingOut(t *testing.T) {
	t.Helper()
	log, err := os.ReadFile(w.server.log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "left out") {
			t.Errorf("the server left an object out that it could have stored: %s", line)
			return
		}
	}
}
