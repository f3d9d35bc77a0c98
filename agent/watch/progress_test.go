package watch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// drip is a body of some bytes at a time, with pauses between them, for as long as
// its request lasts.
type drip struct {
	ctx   context.Context
	bytes int
	pause time.Duration
	left  int // reads until it ends
}

// Read waits and returns some zeros.
func (d *drip) Read(p []byte) (int, error) {
	if d.left--; d.left < 0 {
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
func (d *drip) Close() error { return nil }

// TestBodiesMustComeOn holds that an answer that stops, or next to stops, ends, and
// that one which is slow does not.
func TestBodiesMustComeOn(t *testing.T) {
	lists := limits{head: time.Minute, body: 30 * time.Second, rate: leastRate}
	for _, tt := range []struct {
		why   string
		l     limits
		d     drip
		stall time.Duration // when it is given up; 0 where it is read to its end
	}{
		{"nothing comes", lists, drip{bytes: 1, pause: time.Hour, left: 1}, 30 * time.Second},
		{"a byte a minute", lists, drip{bytes: 1, pause: time.Minute, left: 10}, 30 * time.Second},
		{"a byte a second", lists, drip{bytes: 1, pause: time.Second, left: 100}, 30 * time.Second},
		{"pauses that what came before has earned", lists, drip{bytes: 8 << 10, pause: 2 * time.Second, left: 100}, 0},
		{"a slow line", lists, drip{bytes: 4 << 10, pause: time.Second, left: 3600}, 0},
		{"a watch, with a bookmark a minute", limits{head: time.Minute, body: 75 * time.Second}, drip{bytes: 100, pause: time.Minute, left: 60}, 0},
		{"a watch without", limits{head: time.Minute, body: 75 * time.Second}, drip{bytes: 100, pause: time.Hour, left: 1}, 75 * time.Second},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resp, err := tt.l.send(t.Context(), func(ctx context.Context) (*http.Response, error) {
					tt.d.ctx = ctx
					return &http.Response{Body: &tt.d}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				began := time.Now()
				_, err = io.Copy(io.Discard, resp.Body)
				var stall *stallError
				if tt.stall == 0 && err != nil || tt.stall > 0 && (!errors.As(err, &stall) || time.Since(began).Round(time.Second) != tt.stall) {
					t.Errorf("ended after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}

// TestHeadsMustCome gives a request up whose answer does not begin.
func TestHeadsMustCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := limits{head: time.Minute, body: time.Second}.send(t.Context(), func(ctx context.Context) (*http.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		var stall *stallError
		if !errors.As(err, &stall) || time.Since(began) != time.Minute {
			t.Errorf("ended after %v: %v", time.Since(began), err)
		}
	})
}

// TestSlowReadersAreNotStalls holds that the time which the reader of a body takes
// is not taken for the API server's.
func TestSlowReadersAreNotStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resp, err := limits{head: time.Minute, body: time.Minute}.send(t.Context(), func(ctx context.Context) (*http.Response, error) {
			return &http.Response{Body: &drip{ctx: ctx, bytes: 1, left: 2}}, nil
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
