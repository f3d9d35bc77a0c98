package uplink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette/agent/outbox"
)

const (
	fleet   = 5000
	outage  = 5 * time.Minute
	slice   = 100 * time.Millisecond
	maxWait = 4 * time.Second
)

// arrivalsAfterOutage returns how many of 5,000 agents, which lost their server at the same
// time, connect in each slice after it is back.
func arrivalsAfterOutage(outage time.Duration) map[int]int {
	arrivals := map[int]int{}
	for range fleet {
		pause := reconnectPause{pauses: Backoff{}.pauses(0)}
		at := time.Duration(0)
		for at < outage {
			at += pause.next()
		}
		arrivals[int((at-outage)/slice)]++
	}
	return arrivals
}

// TestAgentsReturnSoonAndNotTogether checks that all agents of a large fleet connect within
// four seconds after the server is back, spread over that time.
func TestAgentsReturnSoonAndNotTogether(t *testing.T) {
	for _, outage := range []time.Duration{time.Nanosecond, time.Second, outage, time.Hour} {
		total, busiest := 0, 0
		for n, agents := range arrivalsAfterOutage(outage) {
			total += agents
			busiest = max(busiest, agents)
			if time.Duration(n)*slice > maxWait {
				t.Errorf("after an outage of %v: %d agents connect after %v", outage, agents, time.Duration(n)*slice)
			}
		}
		if total != fleet || busiest > fleet*9/100 { // 7 % and five standard deviations
			t.Errorf("after an outage of %v: %d of %d agents connect in the busiest %v", outage, busiest, total, slice)
		}
	}
}

func TestPauseGrowsAndIsReset(t *testing.T) {
	pause := reconnectPause{pauses: Backoff{}.pauses(0)}
	for range 1000 {
		pause.reset()
		for n, bound := range []time.Duration{2 * time.Second, 4 * time.Second, 4 * time.Second} {
			if got := pause.next(); got < bound/8 || got >= bound {
				t.Fatalf("pause %d: got %v, want between %v and %v", n, got, bound/8, bound)
			}
		}
	}
}

// TestPausesGrowAsConfigured checks pauses that grow by a factor, with gRPC's jitter, and that come on top of a
// shortest one.
func TestPausesGrowAsConfigured(t *testing.T) {
	for _, tt := range []struct {
		pauses pauses
		bounds []time.Duration
	}{
		{Backoff{MaxDelay: new(5 * time.Second), Multiplier: new(3.)}.pauses(0), []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 5 * time.Second}},
		{Backoff{MaxDelay: new(2 * time.Second), Multiplier: new(1.), Jitter: new(0.)}.pauses(time.Minute), []time.Duration{time.Second, time.Second}},
		{Backoff{MaxDelay: new(24 * time.Hour), Multiplier: new(1e300), Jitter: new(1.)}.pauses(0), []time.Duration{time.Second, 24 * time.Hour, 24 * time.Hour}},
	} {
		pause := reconnectPause{pauses: tt.pauses}
		for range 100 {
			pause.reset()
			for n, bound := range tt.bounds {
				low, high := share(tt.pauses.low, bound)+tt.pauses.shortest, share(tt.pauses.high, bound)+tt.pauses.shortest
				if got := pause.next(); got < low || got > high {
					t.Fatalf("%+v: pause %d: got %v, want between %v and %v", tt.pauses, n, got, low, high)
				}
			}
		}
	}
}

// TestBackoffHasDefaults checks that one key gives the others the values of gRPC, and that no key leaves the pauses short.
func TestBackoffHasDefaults(t *testing.T) {
	for _, tt := range []struct {
		backoff Backoff
		want    pauses
	}{
		{Backoff{}, pauses{2 * time.Second, 4 * time.Second, 2, 0.125, 1, 5 * time.Second}},
		{Backoff{MaxDelay: new(10 * time.Second)}, pauses{time.Second, 10 * time.Second, 1.6, 0.8, 1.2, 5 * time.Second}},
		{Backoff{BaseDelay: new(2 * time.Second), Multiplier: new(1.), Jitter: new(0.)}, pauses{2 * time.Second, 2 * time.Minute, 1, 1, 1, 5 * time.Second}},
	} {
		if got := tt.backoff.pauses(5 * time.Second); got != tt.want {
			t.Errorf("got %+v, want %+v", got, tt.want)
		}
	}
}

// logCounter counts log lines by their level.
type logCounter struct {
	slog.Handler
	mu     sync.Mutex
	levels map[slog.Level]int
}

func (l *logCounter) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.levels[r.Level]++
	return nil
}

func (l *logCounter) Enabled(context.Context, slog.Level) bool { return true }

// TestUplinkDialsSoonAfterOutage runs an uplink through an outage of five minutes: it dials
// within four seconds after the end, and logs one line a minute.
func TestUplinkDialsSoonAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		dialed := make(chan time.Duration, 1)
		var attempts atomic.Int64
		dial := func(ctx context.Context, _ string) (net.Conn, error) {
			attempts.Add(1)
			if at := time.Since(began); at >= outage {
				select {
				case dialed <- at - outage:
				default:
				}
				<-ctx.Done()
			}
			return nil, errors.New("connection refused")
		}
		logs := &logCounter{levels: map[slog.Level]int{}}
		u := New(Config{Target: "passthrough:///server", Creds: insecure.NewCredentials(), Agent: "a",
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(dial)}}, outbox.New(1<<20), nil, nil, slog.New(logs))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = u.Run(ctx)
		}()
		if late := <-dialed; late > maxWait {
			t.Errorf("dialed %v after the outage, want at most %v", late, maxWait)
		}
		cancel()
		<-done
		if lines := logs.levels[slog.LevelWarn]; lines < 4 || lines > 7 {
			t.Errorf("got %d warnings of %d attempts in five minutes, want one a minute", lines, attempts.Load())
		}
	})
}

func TestRepeatedFailuresAreLoggedEachMinute(t *testing.T) {
	var l failureLog
	now := time.Now()
	failure := func(port int, reason string) error {
		return fmt.Errorf("read tcp 10.0.0.1:%d->10.0.0.2:9091: %s", port, reason)
	}
	for n, tt := range []struct {
		err        error
		after      time.Duration
		suppressed int
		ok         bool
	}{
		{failure(40001, "reset"), 0, 0, true},
		{failure(40002, "reset"), time.Second, 0, false},
		{failure(40003, "reset"), time.Second, 0, false},
		{failure(40004, "refused"), time.Second, 2, true},
		{failure(40005, "refused"), 59 * time.Second, 0, false},
		{failure(40006, "refused"), time.Second, 1, true},
	} {
		now = now.Add(tt.after)
		if suppressed, ok := l.shouldLog(tt.err, now); suppressed != tt.suppressed || ok != tt.ok {
			t.Errorf("failure %d: got %d, %v, want %d, %v", n, suppressed, ok, tt.suppressed, tt.ok)
		}
	}
}
