package agentserver

import (
	"time"

	"github.com/vedette-io/vedette/wire"
)

// agentClock turns what an agent's pulses say into times by this server's clock
// alone. An agent that sends ages returns the stamp of the last Heartbeat that it had
// received, and how long it had had it: so the time at which it spoke is known
// without its clock, and without counting the time that its words spent on the way
// as time in which it told all. It is never later than the arrival.
//
// An agent of the first release sends the time by its own clock. How far that is
// wrong is taken from the pulses themselves, as the least that one of them was
// behind its arrival during the last minutes: what others are behind more is their
// age. Where its clock steps back its data looks stale for as long as
// offsetWindow twice at most.
//
// It is used by one goroutine.
type agentClock struct {
	welcomedAt time.Time // when Welcome was sent: the time of stamp 0

	windowStart             time.Time     // of this window
	previousMin, currentMin time.Duration // least offsets of two windows
}

const offsetWindow = 2 * time.Minute

// completeUntil returns up to when all that the agent knew stands before a pulse that arrives
// now.
func (c *agentClock) completeUntil(p *wire.AgentHeartbeat, now time.Time) time.Time {
	if p.AgeMillis == nil {
		return c.byAgentClock(time.UnixMilli(p.GetUnixMillis()), now)
	}
	sentAt := c.welcomedAt.Add(boundedMillis(p.GetStamp()) + boundedMillis(p.GetHeldMillis()))
	if sentAt.After(now) {
		sentAt = now
	}
	return sentAt.Add(-boundedMillis(p.GetAgeMillis()))
}

// boundedMillis is a duration of an agent, which may say anything.
func boundedMillis(n int64) time.Duration {
	const limit = int64(100 * 365 * 24 * time.Hour / time.Millisecond)
	return time.Duration(max(0, min(n, limit))) * time.Millisecond
}

func (c *agentClock) byAgentClock(reported, now time.Time) time.Time {
	const limit = 200 * 365 * 24 * time.Hour / 2
	offset := max(-limit, min(now.Sub(reported), limit))
	switch {
	case c.windowStart.IsZero():
		c.windowStart, c.previousMin, c.currentMin = now, offset, offset
	case now.Sub(c.windowStart) > offsetWindow:
		c.windowStart, c.previousMin, c.currentMin = now, c.currentMin, offset
	}
	c.currentMin = min(c.currentMin, offset)
	return now.Add(min(c.previousMin, c.currentMin) - offset)
}
