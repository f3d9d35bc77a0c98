package kube

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestExecPluginTimesOut checks that a plugin that hangs is ended after a minute, that
// all requests wait for the same run, and that the error is kept for a while.
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
				t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
			}
		}
		if time.Since(began) != execTimeout || runs.Load() != 1 {
			t.Errorf("got %d runs in %v, want 1 in %v", runs.Load(), time.Since(began), execTimeout)
		}
		if _, err := s.get(t.Context()); err == nil || runs.Load() != 1 {
			t.Errorf("got %d runs and error %v, want 1 and the cached error", runs.Load(), err)
		}
		time.Sleep(execMinInterval)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != execTimeout+execMinInterval+time.Second || runs.Load() != 2 {
			t.Errorf("got %d runs and error %v after %v, want a second run", runs.Load(), err, time.Since(began))
		}
		s.wait()
	})
}

// TestExecCredentialsOutliveTheCluster checks that an operation which has begun can send its further
// requests after the account connected again with other credentials, and that no plugin runs for them.
func TestExecCredentialsOutliveTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		s := &execAuthenticator{ctx: ctx, run: func(context.Context) (*execCredentials, error) {
			runs++
			return &execCredentials{token: "t", expires: time.Now().Add(time.Minute)}, nil
		}}
		if _, err := s.get(t.Context()); err != nil {
			t.Fatal(err)
		}
		cancel()
		if creds, err := s.get(t.Context()); err != nil || creds.token != "t" {
			t.Errorf("got %+v, %v, want the credentials that are valid", creds, err)
		}
		time.Sleep(time.Minute)
		if _, err := s.get(t.Context()); !errors.Is(err, context.Canceled) || runs != 1 {
			t.Errorf("got error %v and %d runs, want no further run", err, runs)
		}
	})
}

// TestExecCredentialsExpire checks that credentials are kept until they expire.
func TestExecCredentialsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s := &execAuthenticator{ctx: t.Context(), run: func(context.Context) (*execCredentials, error) {
			runs++
			return &execCredentials{token: "t", expires: time.Now().Add(time.Minute)}, nil
		}}
		for _, want := range []int{1, 1, 2, 2} {
			if _, err := s.get(t.Context()); err != nil || runs != want {
				t.Errorf("got %d runs and error %v, want %d runs", runs, err, want)
			}
			time.Sleep(30 * time.Second)
		}
	})
}
