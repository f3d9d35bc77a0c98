package agentserver

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette/wire"
)

// TestHeartbeatAgeIsMeasuredByTheServerClock checks that an agent's clock makes data
// look neither fresh nor stale. Each case is a series of heartbeats; at is the arrival
// of one, after Welcome.
func TestHeartbeatAgeIsMeasuredByTheServerClock(t *testing.T) {
	welcomed := time.Now()
	type testHeartbeat struct {
		at      time.Duration
		message *wire.AgentHeartbeat
		want    time.Duration // up to when the agent's data is complete, after Welcome
	}
	// An agent that sends ages.
	heartbeatWithAge := func(stamp, held, age time.Duration) *wire.AgentHeartbeat {
		return &wire.AgentHeartbeat{UnixMillis: math.MaxInt64, Stamp: stamp.Milliseconds(), HeldMillis: held.Milliseconds(), AgeMillis: new(age.Milliseconds())}
	}
	// An agent that sends times of a clock that is ahead by this much.
	heartbeatWithTime := func(ahead, at time.Duration) *wire.AgentHeartbeat {
		return &wire.AgentHeartbeat{UnixMillis: welcomed.Add(ahead + at).UnixMilli()}
	}
	const s = time.Second
	for name, heartbeats := range map[string][]testHeartbeat{
		"no delay":                        {{0, heartbeatWithAge(0, 0, 0), 0}, {6 * s, heartbeatWithAge(3*s, 3*s, 0), 6 * s}},
		"changes wait for the server":     {{6 * s, heartbeatWithAge(3*s, 3*s, 2*s), 4 * s}},
		"a heartbeat with a long transit": {{60 * s, heartbeatWithAge(3*s, 1*s, 0), 4 * s}},
		"a false age of the stamp":        {{6 * s, heartbeatWithAge(3*s, time.Hour, 0), 6 * s}},
		"a false stamp":                   {{6 * s, heartbeatWithAge(time.Hour, 0, 0), 6 * s}},
		"values out of range": {
			{6 * s, &wire.AgentHeartbeat{Stamp: math.MaxInt64, HeldMillis: math.MaxInt64, AgeMillis: proto.Int64(math.MinInt64)}, 6 * s},
			{6 * s, &wire.AgentHeartbeat{Stamp: math.MinInt64, HeldMillis: math.MinInt64, AgeMillis: proto.Int64(0)}, 0},
		},
		"old agent, correct clock":                     {{1 * s, heartbeatWithTime(0, 1*s), 1 * s}, {4 * s, heartbeatWithTime(0, 4*s), 4 * s}},
		"old agent, changes wait":                      {{1 * s, heartbeatWithTime(0, 1*s), 1 * s}, {9 * s, heartbeatWithTime(0, 4*s), 4 * s}},
		"old agent, clock an hour ahead":               {{1 * s, heartbeatWithTime(time.Hour, 1*s), 1 * s}, {4 * s, heartbeatWithTime(time.Hour, 4*s), 4 * s}},
		"old agent, clock an hour ahead, changes wait": {{1 * s, heartbeatWithTime(time.Hour, 1*s), 1 * s}, {9 * s, heartbeatWithTime(time.Hour, 4*s), 4 * s}},
		"old agent, clock an hour behind":              {{1 * s, heartbeatWithTime(-time.Hour, 1*s), 1 * s}, {4 * s, heartbeatWithTime(-time.Hour, 4*s), 4 * s}},
		"old agent, clock is set ahead":                {{1 * s, heartbeatWithTime(0, 1*s), 1 * s}, {4 * s, heartbeatWithTime(time.Hour, 4*s), 4 * s}},
		"old agent, clock is set back":                 {{1 * s, heartbeatWithTime(0, 1*s), 1 * s}, {200 * s, heartbeatWithTime(-time.Hour, 200*s), 200*s - time.Hour}, {400 * s, heartbeatWithTime(-time.Hour, 400*s), 400 * s}},
		"old agent, times out of range":                {{1 * s, &wire.AgentHeartbeat{UnixMillis: math.MaxInt64}, 1 * s}, {2 * s, &wire.AgentHeartbeat{UnixMillis: math.MinInt64}, 2*s - 200*365*24*time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			c := agentClock{welcomedAt: welcomed}
			for _, p := range heartbeats {
				got := c.completeUntil(p.message, welcomed.Add(p.at)).Sub(welcomed)
				if diff := got - p.want; diff < -2*time.Millisecond || diff > 0 && got > p.at || diff > 2*time.Millisecond {
					t.Errorf("at %v: complete up to %v, want %v", p.at, got, p.want)
				}
			}
		})
	}
}
