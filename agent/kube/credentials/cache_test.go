package credentials

import (
	"context"
	"errors"
	"strconv"
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
		s := &Cache{ctx: t.Context(), run: func(ctx context.Context) (*Credentials, error) {
			runs.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		began := time.Now()
		errs := make(chan error)
		for range 12 {
			go func() {
				_, err := s.Get(t.Context())
				errs <- err
			}()
		}
		for range 12 {
			if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
			}
		}
		if time.Since(began) != timeout || runs.Load() != 1 {
			t.Errorf("got %d runs in %v, want 1 in %v", runs.Load(), time.Since(began), timeout)
		}
		if _, err := s.Get(t.Context()); err == nil || runs.Load() != 1 {
			t.Errorf("got %d runs and error %v, want 1 and the cached error", runs.Load(), err)
		}
		time.Sleep(minInterval)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != timeout+minInterval+time.Second || runs.Load() != 2 {
			t.Errorf("got %d runs and error %v after %v, want a second run", runs.Load(), err, time.Since(began))
		}
		s.Wait()
	})
}

// TestExecCredentialsOutliveTheCluster checks that an operation which has begun can send its further
// requests after the account connected again with other credentials, and that no plugin runs for them.
func TestExecCredentialsOutliveTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		s := &Cache{ctx: ctx, run: func(context.Context) (*Credentials, error) {
			runs++
			return &Credentials{Token: "t", expires: time.Now().Add(time.Minute)}, nil
		}}
		if _, err := s.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		cancel()
		if creds, err := s.Get(t.Context()); err != nil || creds.Token != "t" {
			t.Errorf("got %+v, %v, want the credentials that are valid", creds, err)
		}
		time.Sleep(time.Minute)
		if _, err := s.Get(t.Context()); !errors.Is(err, context.Canceled) || runs != 1 {
			t.Errorf("got error %v and %d runs, want no further run", err, runs)
		}
	})
}

// TestExecCredentialsExpire checks that credentials are kept until they expire.
func TestExecCredentialsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s := &Cache{ctx: t.Context(), run: func(context.Context) (*Credentials, error) {
			runs++
			return &Credentials{Token: "t", expires: time.Now().Add(time.Minute)}, nil
		}}
		for _, want := range []int{1, 1, 2, 2} {
			if _, err := s.Get(t.Context()); err != nil || runs != want {
				t.Errorf("got %d runs and error %v, want %d runs", runs, err, want)
			}
			time.Sleep(30 * time.Second)
		}
	})
}

// TestSkewedClockDoesNotExpireCredentials checks how long credentials are used that expire at some time by this machine's
// clock, which may be hours off.
func TestSkewedClockDoesNotExpireCredentials(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct{ expires, want time.Time }{
		"unknown":                     {time.Time{}, time.Time{}},
		"in an hour":                  {now.Add(time.Hour), now.Add(time.Hour)},
		"in a moment":                 {now.Add(time.Second), now.Add(minInterval)},
		"now":                         {now, now.Add(skewedInterval)},
		"two hours ago, by our clock": {now.Add(-2 * time.Hour), now.Add(skewedInterval)},
	} {
		if got := keptUntil(tt.expires, now); !got.Equal(tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// TestCredentialsAreReplacedBeforeTheyExpire checks that requests use credentials until these expire while new ones are got, whether that
// takes long or fails, and that only one run does so.
func TestCredentialsAreReplacedBeforeTheyExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		answer := make(chan error)
		s := New(t.Context(), func(context.Context) (*Credentials, error) {
			runs++
			if runs > 1 {
				if err := <-answer; err != nil {
					return nil, err
				}
			}
			expires := time.Now().Add(8 * time.Minute)
			return &Credentials{Token: strconv.Itoa(runs), expires: expires, replace: replaceAt(expires, time.Now())}, nil
		}, nil)
		get := func(want string) {
			t.Helper()
			creds, err := s.Get(t.Context())
			if err != nil || creds.Token != want {
				t.Fatalf("got %+v, %v, want token %s", creds, err, want)
			}
		}
		get("1")
		time.Sleep(5 * time.Minute)
		get("1")
		synctest.Wait()
		if runs != 1 {
			t.Fatalf("got %d runs before the last quarter, want 1", runs)
		}
		time.Sleep(90 * time.Second)
		for range 3 {
			get("1") // while the second run waits
		}
		synctest.Wait()
		answer <- errors.New("the service is down")
		synctest.Wait()
		get("1")
		if synctest.Wait(); runs != 2 {
			t.Fatalf("got %d runs, want a pause after the second, which failed", runs)
		}
		time.Sleep(minInterval)
		get("1")
		answer <- nil
		synctest.Wait()
		get("3")
		time.Sleep(7 * time.Minute)
		get("3")
		synctest.Wait()
		answer <- errors.New("the service is down")
		synctest.Wait()
		time.Sleep(2 * time.Minute) // the end of the third
		go func() { answer <- errors.New("the service is still down") }()
		if creds, err := s.Get(t.Context()); err == nil {
			t.Errorf("got %+v, which have expired, want an error", creds)
		}
	})
}
