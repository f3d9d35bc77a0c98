package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// dripBody is a body that returns some bytes at a time, with a pause before each read.
type dripBody struct {
	ctx   context.Context
	bytes int
	pause time.Duration
	reads int // until io.EOF
}

// Read waits and returns some zeros.
func (d *dripBody) Read(p []byte) (int, error) {
	d.reads--
	if d.reads < 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(d.pause):
		return min(len(p), d.bytes), nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

// Close does nothing.
func (d *dripBody) Close() error { return nil }

// TestStalledBodyTimesOut checks that a response that stops, or almost stops, fails, and
// that a slow one does not.
func TestStalledBodyTimesOut(t *testing.T) {
	listTimeouts := Timeouts{Header: time.Minute, Progress: 30 * time.Second, BytesPerSecond: minBytesPerSecond}
	for _, tt := range []struct {
		name       string
		l          Timeouts
		body       dripBody
		stallAfter time.Duration // when the response fails; 0 if it does not
	}{
		{"no data", listTimeouts, dripBody{bytes: 1, pause: time.Hour, reads: 1}, 30 * time.Second},
		{"a byte a minute", listTimeouts, dripBody{bytes: 1, pause: time.Minute, reads: 10}, 30 * time.Second},
		{"a byte a second", listTimeouts, dripBody{bytes: 1, pause: time.Second, reads: 100}, 30 * time.Second},
		{"pauses that earlier data earned", listTimeouts, dripBody{bytes: 8 << 10, pause: 2 * time.Second, reads: 100}, 0},
		{"a slow connection", listTimeouts, dripBody{bytes: 4 << 10, pause: time.Second, reads: 3600}, 0},
		{"a watch with a bookmark a minute", Timeouts{Header: time.Minute, Progress: 75 * time.Second}, dripBody{bytes: 100, pause: time.Minute, reads: 60}, 0},
		{"a watch without bookmarks", Timeouts{Header: time.Minute, Progress: 75 * time.Second}, dripBody{bytes: 100, pause: time.Hour, reads: 1}, 75 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resp, err := tt.l.send(t.Context(), func(ctx context.Context) (*http.Response, error) {
					tt.body.ctx = ctx
					return &http.Response{Body: &tt.body}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				began := time.Now()
				_, err = io.Copy(io.Discard, resp.Body)
				var stall *StallError
				if tt.stallAfter == 0 && err != nil || tt.stallAfter > 0 && (!errors.As(err, &stall) || time.Since(began).Round(time.Second) != tt.stallAfter) {
					t.Errorf("got error %v after %v, want a stall after %v (0 for none)", err, time.Since(began), tt.stallAfter)
				}
			})
		})
	}
}

// TestMissingResponseHeaderTimesOut checks that a request without a response fails.
func TestMissingResponseHeaderTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := Timeouts{Header: time.Minute, Progress: time.Second}.send(t.Context(), func(ctx context.Context) (*http.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		var stall *StallError
		if !errors.As(err, &stall) || time.Since(began) != time.Minute {
			t.Errorf("got error %v after %v, want a stall after a minute", err, time.Since(began))
		}
	})
}

// TestSlowReaderDoesNotTimeOut checks that the time that the reader of a body needs does
// not count.
func TestSlowReaderDoesNotTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resp, err := Timeouts{Header: time.Minute, Progress: time.Minute}.send(t.Context(), func(ctx context.Context) (*http.Response, error) {
			return &http.Response{Body: &dripBody{ctx: ctx, bytes: 1, reads: 2}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for range 2 {
			if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
	})
}
