package gate

import (
	"time"

	"github.com/vedette-io/vedette/wire"
)

// agentClock turns what an agent's pulses say into times by this server's clock
// alone. An agent that sends ages returns the stamp of the last Pulse that it had
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
	welcomed time.Time // when Welcome was sent: the time of stamp 0

	began          time.Time     // of this window
	previous, this time.Duration // least offsets of two windows
}

const offsetWindow = 2 * time.Minute

// at returns up to when all that the agent knew stands before a pulse that arrives
// now.
func (c *agentClock) at(p *wire.AgentPulse, now time.Time) time.Time {
	if p.AgeMillis == nil {
		return c.byItsClock(time.UnixMilli(p.GetUnixMillis()), now)
	}
	said := c.welcomed.Add(millis(p.GetStamp()) + millis(p.GetHeldMillis()))
	if said.After(now) {
		said = now
	}
	return said.Add(-millis(p.GetAgeMillis()))
}

// millis is a duration of an agent, which may say anything.
func millis(n int64) time.Duration {
	const most = int64(100 * 365 * 24 * time.Hour / time.Millisecond)
	return time.Duration(max(0, min(n, most))) * time.Millisecond
}

func (c *agentClock) byItsClock(said, now time.Time) time.Time {
	const most = 200 * 365 * 24 * time.Hour / 2
	offset := max(-most, min(now.Sub(said), most))
	switch {
	case c.began.IsZero():
		c.began, c.previous, c.this = now, offset, offset
	case now.Sub(c.began) > offsetWindow:
		c.began, c.previous, c.this = now, c.this, offset
	}
	c.this = min(c.this, offset)
	return now.Add(min(c.previous, c.this) - offset)
}
