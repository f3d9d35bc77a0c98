package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// recorder executes calls, and records them with the time since it was made.
type recorder struct {
	t        *testing.T
	start    time.Time
	duration time.Duration // of each batch
	err      error         // of each batch

	mu       sync.Mutex
	together [][]int
	at       []time.Duration
	alone    []int
}

func newRecorder(t *testing.T) *recorder { return &recorder{t: t, start: time.Now()} }

func (r *recorder) line(limit, running int) *Line[int, int] {
	return New(Config[int, int]{Max: limit, Interval: 50 * time.Millisecond, MaxRunning: running, Together: r.do, Alone: r.doAlone})
}

func (r *recorder) do(ctx context.Context, calls []int) ([]Outcome[int], error) {
	r.mu.Lock()
	r.together, r.at = append(r.together, slices.Clone(calls)), append(r.at, time.Since(r.start))
	r.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(r.duration):
	}
	outcomes := make([]Outcome[int], len(calls))
	for i, n := range calls {
		outcomes[i] = Outcome[int]{Value: 10 * n, IsLeft: n < 0}
	}
	return outcomes, r.err
}

func (r *recorder) doAlone(_ context.Context, n int) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alone = append(r.alone, n)
	return 10 * n, nil
}

// call makes calls at the same moment, and waits for their outcomes.
func (r *recorder) call(ctx context.Context, l *Line[int, int], numbers ...int) {
	var group sync.WaitGroup
	for _, n := range numbers {
		group.Go(func() {
			if got, err := l.Do(ctx, n); got != 10*n || err != nil {
				r.t.Errorf("the call %d returns %d, %v", n, got, err)
			}
		})
		synctest.Wait() // so that they come in this order
	}
	group.Wait()
}

// TestFewCallsDoNotWait makes one call after the other. The fourth one of an interval is too many, and so are all of the next interval.
func TestFewCallsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		l := r.line(10, 1)
		l.cfg.Few = 3
		for _, c := range []struct {
			pause  time.Duration // before the call
			number int
			want   time.Duration // for which it waits
		}{{0, 1, 0}, {0, 2, 0}, {0, 3, 0}, {0, 4, 50 * time.Millisecond}, {0, 5, 50 * time.Millisecond}, {time.Second, 6, 0}, {0, 7, 0}} {
			time.Sleep(c.pause)
			began := time.Now()
			r.call(t.Context(), l, c.number)
			if took := time.Since(began); took != c.want {
				t.Errorf("call %d takes %v, want %v", c.number, took, c.want)
			}
		}
	})
}

func TestOneCallDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		r.call(t.Context(), r.line(10, 1), 1)
		if took := time.Since(r.start); took != 0 || !slices.Equal(r.alone, []int{1}) || r.together != nil {
			t.Errorf("a call alone takes %v, is executed as %v and in %v", took, r.alone, r.together)
		}
	})
}

func TestManyCallsAreExecutedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		r.call(t.Context(), r.line(10, 1), 1, 2, 3, 4)
		if !slices.Equal(r.alone, []int{1}) || len(r.together) != 1 || !slices.Equal(r.together[0], []int{2, 3, 4}) {
			t.Errorf("executed alone %v and together %v, want the first alone and the others together", r.alone, r.together)
		}
		if r.at[0] != 50*time.Millisecond {
			t.Errorf("the second batch begins after %v, want 50ms", r.at[0])
		}
	})
}

func TestFullBatchesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		r.call(t.Context(), r.line(2, 3), 1, 2, 3, 4, 5)
		if len(r.together) != 2 || r.at[0] != 0 || r.at[1] != 0 {
			t.Errorf("batches %v begin at %v, want two at once", r.together, r.at)
		}
	})
}

func TestCallsWaitWhileBatchesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		r.duration = time.Second
		r.call(t.Context(), r.line(2, 1), 1, 2, 3, 4, 5)
		if len(r.together) != 2 || r.at[1] != r.at[0]+time.Second {
			t.Errorf("batches %v begin at %v, want the second when the first has ended", r.together, r.at)
		}
	})
}

func TestCallsThatAreLeftOutAreExecutedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		r.call(t.Context(), r.line(10, 1), 1, 2, -3, 4)
		if !slices.Equal(r.alone, []int{1, -3}) {
			t.Errorf("executed alone: %v, want 1 and -3", r.alone)
		}
	})
}

func TestAfterAnErrorEachIsExecutedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		r.err = errors.New("broken")
		r.call(t.Context(), r.line(10, 1), 1, 2, 3)
		slices.Sort(r.alone)
		if len(r.together) != 1 || !slices.Equal(r.alone, []int{1, 2, 3}) {
			t.Errorf("executed together %v and alone %v, want one batch, and all alone", r.together, r.alone)
		}
	})
}

func TestCallersLeaveBeforeTheirCallBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		l := r.line(10, 1)
		r.call(t.Context(), l, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Do(ctx, 2); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, want that of the context", err)
		}
		r.call(t.Context(), l, 3, 4)
		if len(r.together) != 1 || !slices.Equal(r.together[0], []int{3, 4}) {
			t.Errorf("executed %v, want 3 and 4", r.together)
		}
	})
}

func TestABatchGoesOnWhileOneCallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		r.duration = time.Second
		l := r.line(10, 1)
		r.call(t.Context(), l, 1)
		impatient, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			if got, err := l.Do(impatient, 2); got != 20 || err != nil {
				t.Errorf("the call of a caller who leaves returns %d, %v, although it is done", got, err)
			}
		})
		group.Go(func() { _, _ = l.Do(t.Context(), 3) })
		group.Wait()
		if len(r.together) != 1 || len(r.alone) != 1 {
			t.Errorf("executed together %v and alone %v, want only the first alone", r.together, r.alone)
		}
	})
}

func TestABatchEndsWithItsLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(t)
		r.duration = time.Second
		l := r.line(10, 1)
		r.call(t.Context(), l, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		r.call(ctx, l, 4, 5, 6)
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("a batch whose callers have all left takes %v", took)
		}
	})
}
