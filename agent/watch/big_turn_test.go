package watch

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestABigObjectNeedsNoSlowTurn holds that snapshots of one slow account, of which one
// has its slow turn and waits to read a big object, and others read big objects and
// have lost their turns, don't wait for each other.
func TestABigObjectNeedsNoSlowTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewShared(mostBig)
		w := newTurns(t, shared)
		var bigs []*bigTurn
		for range mostBig {
			of := takeTurn(t, w)
			big := &bigTurn{ctx: t.Context(), turns: shared.big, limit: time.Minute, of: of}
			if err := big.take(); err != nil {
				t.Fatal(err)
			}
			bigs = append(bigs, big)
		}
		slow := &turn{w: w, timer: time.NewTimer(time.Hour)}
		if err := slow.takeSlow(t.Context()); err != nil {
			t.Fatal(err)
		}
		waits := &bigTurn{ctx: t.Context(), turns: shared.big, limit: time.Minute, of: slow}
		done := make(chan error, 1)
		go func() { done <- waits.take() }()
		synctest.Wait()
		began := time.Now()
		for _, big := range bigs {
			big.of.wait()
			time.Sleep(2 * time.Second) // the API server is slow, and the shared turn is gone
			resume(t, big.of, 1)
			big.free()
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		waits.free()
		slow.end(true)
		for _, big := range bigs { // now that there are slow turns again
			resume(t, big.of, 1)
			big.of.end(true)
		}
		if waited := time.Since(began); waited > 10*time.Second || len(shared.turns)+len(shared.slow)+len(shared.big)+len(w.slowTurn) != 0 {
			t.Errorf("it took %v; %d, %d, %d and %d turns are left behind", waited, len(shared.turns), len(shared.slow), len(shared.big), len(w.slowTurn))
		}
	})
}
