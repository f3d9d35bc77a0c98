package latest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/internal/latest"
)

// source counts how often it is read, which takes a second.
type source struct {
	version, reads int
	err            error
}

func (s *source) next(ctx context.Context, _ *int) (*int, error) {
	s.reads++
	version := s.version
	select {
	case <-time.After(time.Second):
		return &version, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func since(wanted int) func(*int) bool { return func(got *int) bool { return *got >= wanted } }

// TestOneReadForAll checks that callers who come together share one read.
func TestOneReadForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var value latest.Value[int]
		s := &source{version: 1}
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				if got, err := value.Get(t.Context(), since(1), s.next); err != nil || *got != 1 {
					t.Errorf("got %v and error %v, want 1", got, err)
				}
			})
		}
		callers.Wait()
		if s.reads != 1 {
			t.Errorf("got %d reads, want 1", s.reads)
		}
	})
}

// TestReadThatBeganTooEarly checks that a caller does not get what was read before the change that it must see.
func TestReadThatBeganTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var value latest.Value[int]
		s := &source{version: 1}
		go func() { _, _ = value.Get(t.Context(), since(1), s.next) }()
		synctest.Wait()
		s.version = 2
		if got, err := value.Get(t.Context(), since(2), s.next); err != nil || *got != 2 {
			t.Errorf("got %v and error %v, want 2", got, err)
		}
	})
}

// TestReadOutlivesItsCaller checks that a caller who leaves neither waits for the read nor ends it.
func TestReadOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var value latest.Value[int]
		s, began := &source{version: 1}, time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := value.Get(ctx, since(1), s.next); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Millisecond {
			t.Errorf("got error %v after %v, want the end of the context", err, time.Since(began))
		}
		if got, err := value.Get(t.Context(), since(1), s.next); err != nil || *got != 1 || s.reads != 1 {
			t.Errorf("got %v, error %v and %d reads, want the read that had begun", got, err, s.reads)
		}
	})
}

// TestFailuresKeepTheLastVersion checks errors and panics.
func TestFailuresKeepTheLastVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var value latest.Value[int]
		s := &source{version: 1}
		if _, err := value.Get(t.Context(), since(1), s.next); err != nil {
			t.Fatal(err)
		}
		s.err = errors.New("no database")
		if _, err := value.Get(t.Context(), since(2), s.next); !errors.Is(err, s.err) {
			t.Errorf("got error %v, want %v", err, s.err)
		}
		_, err := value.Get(t.Context(), since(2), func(context.Context, *int) (*int, error) { panic("broken") })
		if err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("got error %v, want the panic", err)
		}
		if last := value.Last(); last == nil || *last != 1 {
			t.Errorf("got %v, want 1", fmt.Sprint(last))
		}
	})
}
