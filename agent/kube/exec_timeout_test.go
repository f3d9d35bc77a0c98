package kube

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestExecPluginTimesOut holds that a program which hangs is ended after a minute, that
// all requests wait for one run of it, and that its failure counts for a while.
func TestExecPluginTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		s := &execAuthenticator{ctx: t.Context(), run: func(ctx context.Context) (*execCredentials, error) {
			runs.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		began := time.Now()
		errs := make(chan error)
		for range 12 {
			go func() {
				_, err := s.get(t.Context())
				errs <- err
			}()
		}
		for range 12 {
			if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if time.Since(began) != execTimeout || runs.Load() != 1 {
			t.Errorf("%d runs in %v", runs.Load(), time.Since(began))
		}
		if _, err := s.get(t.Context()); err == nil || runs.Load() != 1 {
			t.Errorf("%d runs: %v", runs.Load(), err)
		}
		time.Sleep(execMinInterval)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != execTimeout+execMinInterval+time.Second || runs.Load() != 2 {
			t.Errorf("%d runs: %v", runs.Load(), err)
		}
		s.wait()
	})
}

// TestExecCredentialsExpire holds that credentials are kept until they expire.
func TestExecCredentialsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s := &execAuthenticator{ctx: t.Context(), run: func(context.Context) (*execCredentials, error) {
			runs++
			return &execCredentials{token: "t", expires: time.Now().Add(time.Minute)}, nil
		}}
		for _, want := range []int{1, 1, 2, 2} {
			if _, err := s.get(t.Context()); err != nil || runs != want {
				t.Errorf("%d runs, want %d: %v", runs, want, err)
			}
			time.Sleep(30 * time.Second)
		}
	})
}
