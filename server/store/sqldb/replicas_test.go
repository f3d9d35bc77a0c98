package sqldb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestPositionsAreAskedAfterTheCall has callers that share answers, none of which was asked for before they came.
func TestPositionsAreAskedAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		asked := 0
		f := floor{read: func(ctx context.Context) (string, error) {
			asked++
			position := time.Since(start)
			time.Sleep(10 * time.Millisecond)
			return fmt.Sprint(int64(position)), ctx.Err()
		}}
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				came := time.Since(start)
				text, err := f.get(t.Context())
				var position int64
				if _, errScan := fmt.Sscan(text, &position); err != nil || errScan != nil || position < int64(came) {
					t.Errorf("caller %d came at %v and got %q, %v", i, came, text, err)
				}
				if took := time.Since(start) - came; took > 20*time.Millisecond {
					t.Errorf("caller %d waited for %v", i, took)
				}
			})
		}
		callers.Wait()
		if asked > 12 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// TestPositionsOfAFrozenPrimary has a primary that does not answer: nobody waits for longer than floorTimeout, or than it wants to.
func TestPositionsOfAFrozenPrimary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := floor{read: func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }}
		impatient, cancel := context.WithTimeout(t.Context(), floorTimeout/2)
		defer cancel()
		if _, err := f.get(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		began := time.Now()
		if _, err := f.get(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*floorTimeout {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		synctest.Wait()
	})
}

// TestReplicasRest has replicas that fail: each is left out for a moment, also if the clock is set back.
func TestReplicasRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := newDB(Config{})
		r := &replicas{db: d, all: []*replica{{name: "a"}, {name: "b"}}}
		r.all[0].fail(d, errBehind)
		for range 4 {
			if got := r.choose(time.Now()); got == nil || got.name != "b" {
				t.Fatalf("got %+v", got)
			}
		}
		r.all[1].fail(d, errBehind)
		if got := r.choose(time.Now()); got != nil {
			t.Errorf("got %s, which rests", got.name)
		}
		if got := r.choose(time.Now().Add(-time.Hour)); got == nil {
			t.Error("after the clock was set back, replicas rest for long")
		}
		time.Sleep(replicaRest)
		names := map[string]bool{}
		for range 2 {
			names[r.choose(time.Now()).name] = true
		}
		if len(names) != 2 {
			t.Errorf("got %v, want both in turn", names)
		}
	})
}
