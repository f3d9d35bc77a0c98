package infrastructure

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/readlimit"
)

// TestChangesDoNotDelayCallers changes an application during each read of it. A caller who waits for
// the read that began before its call needs one more read, whoever begins it.
func TestChangesDoNotDelayCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemoryStore()
		s.entered, s.proceed = make(chan struct{}), make(chan struct{})
		r := NewReader(configOf(s))
		const callers = 20
		done := make(chan bool, callers+1)
		ask := func() { readApplication(t, r, "web"); done <- true }
		go ask()
		<-s.entered
		for range callers {
			go ask()
		}
		synctest.Wait()
		for range 2 {
			s.change(func() { s.applications++ })
			s.proceed <- struct{}{}
			synctest.Wait()
			select {
			case <-s.entered:
			default:
			}
		}
		for i := range callers + 1 {
			select {
			case <-done:
			default:
				t.Fatalf("after two reads, %d of %d callers have an answer, want all", i, callers+1)
			}
		}
	})
}

// TestReadsDoNotWaitForOneCaller lets the caller whose request begins a read hold all the memory that
// it may have, for example because it reads another answer slowly.
func TestReadsDoNotWaitForOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := readlimit.New(readlimit.Config{Bytes: 4096})
		for range 2 { // its share of the memory for small requests
			if _, err := limiter.Acquire(t.Context(), readlimit.Caller{Source: "10.0.0.1"}, 192); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		cfg := configOf(newMemoryStore())
		cfg.Limiter = limiter
		readApplication(t, NewReader(cfg), "web")
		if took := time.Since(began); took > 0 {
			t.Errorf("the read waited for %v", took)
		}
	})
}

// TestNothingIsAnsweredFromMemoryWithoutLease checks an application that is in memory.
func TestNothingIsAnsweredFromMemoryWithoutLease(t *testing.T) {
	s := newMemoryStore()
	r := NewReader(configOf(s))
	readApplication(t, r, "web")
	s.change(func() { s.leaseErr = errors.New("another server has taken over") })
	if _, err := r.Application(t.Context(), "web"); !errors.Is(err, s.leaseErr) {
		t.Errorf("got %v, want %v", err, s.leaseErr)
	}
}
