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

// TestDatabaseErrorsAreRetried makes the database return each of its own errors in turn while the
// cluster changes. No object is the cause of such an error, so all changes must be stored at the
// end, and none may be left out on the way.
func TestDatabaseErrorsAreRetried(t *testing.T) {
	names := everyDatabase()
	if *singleDB == "" {
		names = []string{"mariadb", "postgres"}
	}
	runOn(t, names, singleAgent, func(t *testing.T, w *world) {
		w.whileChanging(func(ctx context.Context) {
			for i, code := range w.db.errors {
				w.db.errorInjector.FailEvery(code, 1+i%4)
				sleep(ctx, 700*time.Millisecond)
				w.db.errorInjector.Reset()
				sleep(ctx, 300*time.Millisecond)
			}
		})
		w.awaitConvergence()
		w.wantNoObjectSkipped(t)
		t.Logf("%d statements failed with injected errors", w.db.errorInjector.Injected())
	})
}

// TestFrozenDatabaseSkipsNothing freezes the database for longer than a statement may take.
func TestFrozenDatabaseSkipsNothing(t *testing.T) {
	const long = 17 * time.Second
	runOn(t, everyDatabase(), singleAgent, func(t *testing.T, w *world) {
		w.whileChanging(func(ctx context.Context) {
			if w.db.pause != nil {
				w.db.pause()
				sleep(ctx, long)
				w.db.resume()
				return
			}
			w.server.Pause() // like a disk that hangs
			sleep(ctx, long)
			w.server.Resume()
			must(t, w.db.lock(ctx))
			sleep(ctx, long/3)
			must(t, w.db.unlock(ctx))
		})
		w.awaitConvergence()
		w.wantNoObjectSkipped(t)
	})
}

// whileChanging calls do while the first cluster changes.
func (w *world) whileChanging(do func(ctx context.Context)) {
	ctx, stop := context.WithCancel(w.t.Context())
	load := &workload{cluster: w.clusters[0], rng: rand.New(rand.NewPCG(11, 11)), keepKinds: true}
	var work sync.WaitGroup
	work.Go(func() { load.run(ctx) })
	do(ctx)
	stop()
	work.Wait()
}

// wantNoObjectSkipped checks that the server left out no object.
func (w *world) wantNoObjectSkipped(t *testing.T) {
	t.Helper()
	log, err := os.ReadFile(w.server.Log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "left out") {
			t.Errorf("the server left out an object that it could have stored: %s", line)
			return
		}
	}
}
