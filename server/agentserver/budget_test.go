package agentserver

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette/internal/fair"
)

func TestRecordBudgetPerSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := newRecordBudget(100)
		a, b, other := f.open("flood"), f.open("flood"), f.open("honest")
		for range 5 {
			if err := a.add(ctx, 20); err != nil {
				t.Fatal(err)
			}
		}
		added := make(chan error, 1)
		go func() { added <- b.add(ctx, 40) }()
		synctest.Wait()
		if len(added) > 0 {
			t.Error("a source exceeds its limit")
		}
		if err := other.add(ctx, 1000); err != nil { // more than all of it, and yet it passes
			t.Errorf("another source: got %v", err)
		}
		a.stored(1)
		synctest.Wait()
		if len(added) > 0 {
			t.Error("40 bytes were added, but only 20 are free")
		}
		a.stored(2)
		a.stored(2) // again
		if err := <-added; err != nil {
			t.Error(err)
		}
		go func() { added <- b.add(ctx, 80) }()
		synctest.Wait()
		a.close()
		synctest.Wait()
		if len(added) > 0 {
			t.Error("80 bytes were added, but only 60 are free")
		}
		cancel()
		if err := <-added; err == nil {
			t.Error("a session that has ended still waits")
		}
		b.close()
		other.close()
		if got := f.line.Stats(); got != (fair.Stats{}) {
			t.Errorf("got %+v without a session, want nothing used", got)
		}
	})
}
