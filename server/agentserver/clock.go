package agentserver

import (
	"time"

	"github.com/vedette-io/vedette/wire"
)

// agentClock converts the times in an agent's heartbeats to this server's clock, so that a
// wrong clock of an agent never makes data look fresh. A heartbeat has the stamp of the
// last Heartbeat that the agent received and how long ago that was. From these follows
// when it was sent, without the agent's clock and without the time in transit. The
// result is never later than the arrival.
//
// An agent of the first release sends only the time of its own clock. The offset of that
// clock is estimated as the smallest difference between a heartbeat's time and its
// arrival during the last minutes. A larger difference is the age of the data. If the
// agent's clock is set back, its data looks stale for at most twice offsetWindow.
//
// It is not safe for concurrent use.
type agentClock struct {
	welcomedAt time.Time // the time of stamp 0

	windowStart             time.Time     // of currentMin
	previousMin, currentMin time.Duration // the smallest offsets in the last two windows
}

const offsetWindow = 2 * time.Minute

// completeUntil returns the time up to which everything that the agent knew precedes a
// heartbeat that arrives now.
func (c *agentClock) completeUntil(p *wire.AgentHeartbeat, now time.Time) time.Time {
	if p.AgeMillis == nil {
		return c.byAgentClock(time.UnixMilli(p.GetUnixMillis()), now)
	}
	return c.sentAt(p, now).Add(-boundedMillis(p.GetAgeMillis()))
}

// sentAt returns when a heartbeat was sent that arrives now and has stamps.
func (c *agentClock) sentAt(p *wire.AgentHeartbeat, now time.Time) time.Time {
	sentAt := c.welcomedAt.Add(boundedMillis(p.GetStamp()) + boundedMillis(p.GetHeldMillis()))
	if sentAt.After(now) {
		return now
	}
	return sentAt
}

// boundedMillis returns a duration from an agent. It is bounded because an agent may
// send any value.
func boundedMillis(n int64) time.Duration {
	const limit = int64(100 * 365 * 24 * time.Hour / time.Millisecond)
	return time.Duration(max(0, min(n, limit))) * time.Millisecond
}

func (c *agentClock) byAgentClock(reported, now time.Time) time.Time {
	const limit = 200 * 365 * 24 * time.Hour / 2
	offset := max(-limit, min(now.Sub(reported), limit))
	switch {
	case c.windowStart.IsZero():
		c.windowStart = now
		c.previousMin = offset
		c.currentMin = offset
	case now.Sub(c.windowStart) > offsetWindow:
		c.windowStart = now
		c.previousMin = c.currentMin
		c.currentMin = offset
	}
	c.currentMin = min(c.currentMin, offset)
	return now.Add(min(c.previousMin, c.currentMin) - offset)
}
