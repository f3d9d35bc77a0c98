package uplink

import "time"

// connections decides when the agent connects, which connection serves, and when it is replaced. It is a state machine: events
// go in, effects come out. It does no I/O and reads no clock; runner executes the effects.
//
//	connecting ──welcomed──> serving ──drained──> moving ──the next is welcomed, operations have ended──> serving
//	     ↑                      │                   │
//	     └────────ended─────────┴───────────────────┘
//
// Guarantees:
//
//   - At most one connection serves, and at most one more is being opened.
//   - A connection whose server asks to connect again serves until the next one has its Welcome. Then it ends, and only after that
//     the next one serves.
//   - Servers that refuse, or ask to connect again at once, are asked again after pauses that grow.
//
// docs/decisions/0189 says why.
type connections struct {
	pause       reconnectPause
	last        connectionID // the last one that was opened
	current     connectionID // the one that serves; 0 for none
	servesSince time.Time    // of current
	isDraining  bool         // the server of current has asked to connect again
	isEnding    bool         // endConnection was emitted for current
	next        connectionID // the one that is being opened; 0 for none
	isReady     bool         // next has its Welcome
	isRejected  bool         // the server of next has asked to connect again, and endConnection was emitted for next
	nextDrain   *drained     // the server of next has asked to connect again, and next serves all the same; nil if not
}

// connectionID identifies a connection of one process, from 1 on.
type connectionID uint64

// stableAfter is for how long a connection must have served until the pauses begin anew.
const stableAfter = 10 * time.Second

// maxDrainDelay bounds how long a server may ask to wait before the agent connects to another one.
const maxDrainDelay = time.Minute

// connectionEvent is something that has happened.
type connectionEvent interface{ isConnectionEvent() }

type (
	// started begins.
	started struct{}
	// pauseOver ends the pause that pauseFor began.
	pauseOver struct{}
	// welcomed means that the server of a connection has sent its Welcome.
	welcomed struct{ id connectionID }
	// drained means that the server of a connection asks to connect again.
	drained struct {
		id        connectionID
		after     *time.Duration // when; nil if the server does not say
		reason    string
		staysOpen bool // the server accepts the agent again
	}
	// operationsEnded answers awaitOperations.
	operationsEnded struct{ id connectionID }
	// ended means that a connection has ended, or could not be established. Nothing of it runs any more.
	ended struct {
		id  connectionID
		err error
	}
)

// connectionEffect is something to do.
type connectionEffect interface{ isConnectionEffect() }

type (
	// openConnection opens a connection, up to the server's Welcome.
	openConnection struct{ id connectionID }
	// serveOver registers the accounts over a connection, and sends what the outbox has.
	serveOver struct{ id connectionID }
	// endConnection ends a connection.
	endConnection struct{ id connectionID }
	// awaitOperations waits until the operations that came over a connection have ended, as long as that is reasonable.
	awaitOperations struct{ id connectionID }
	// pauseFor begins a pause. It replaces one that runs.
	pauseFor struct{ duration time.Duration }
)

func (started) isConnectionEvent()         {}
func (pauseOver) isConnectionEvent()       {}
func (welcomed) isConnectionEvent()        {}
func (drained) isConnectionEvent()         {}
func (operationsEnded) isConnectionEvent() {}
func (ended) isConnectionEvent()           {}

func (openConnection) isConnectionEffect()  {}
func (serveOver) isConnectionEffect()       {}
func (endConnection) isConnectionEffect()   {}
func (awaitOperations) isConnectionEffect() {}
func (pauseFor) isConnectionEffect()        {}

// step handles an event, and returns what follows from it, in order. Events that do not concern the state are ignored.
func (c *connections) step(e connectionEvent, now time.Time) []connectionEffect {
	switch e := e.(type) {
	case started:
		return c.open()
	case pauseOver:
		if c.next == 0 && (c.current == 0 || c.isDraining) {
			return c.open()
		}
	case welcomed:
		return c.welcomed(e, now)
	case drained:
		return c.drained(e, now)
	case operationsEnded:
		if e.id == c.current && c.isReady && !c.isEnding {
			c.isEnding = true
			return []connectionEffect{endConnection{c.current}}
		}
	case ended:
		return c.ended(e, now)
	}
	return nil
}

func (c *connections) open() []connectionEffect {
	c.last++
	c.next, c.isRejected = c.last, false
	return []connectionEffect{openConnection{c.next}}
}

func (c *connections) welcomed(e welcomed, now time.Time) []connectionEffect {
	switch {
	case e.id != c.next || c.isReady || c.isRejected:
		return nil
	case c.current == 0:
		return c.replace(now)
	}
	c.isReady = true
	return []connectionEffect{awaitOperations{c.current}}
}

// replace lets the next connection serve.
func (c *connections) replace(now time.Time) []connectionEffect {
	drain := c.nextDrain
	c.current, c.servesSince = c.next, now
	c.isDraining, c.isEnding = false, false
	c.forgetNext()
	effects := []connectionEffect{serveOver{c.current}}
	if drain == nil {
		return effects
	}
	return append(effects, c.drained(*drain, now)...)
}

func (c *connections) forgetNext() {
	c.next = 0
	c.isReady = false
	c.nextDrain = nil
}

func (c *connections) drained(e drained, now time.Time) []connectionEffect {
	switch {
	case e.id == c.next && c.isEnding: // better than none
		c.nextDrain = &e
		return nil
	case e.id == c.next: // it would have to be replaced at once
		c.isReady, c.isRejected = false, true
		return []connectionEffect{endConnection{c.next}}
	case e.id != c.current || c.isDraining:
		return nil
	}
	c.isDraining = true
	return []connectionEffect{pauseFor{c.drainPause(e.after, now)}}
}

// drainPause returns the pause before the agent connects to another server. A server that asks to connect again all the time decides
// nothing: the pauses grow.
func (c *connections) drainPause(after *time.Duration, now time.Time) time.Duration {
	isStable := now.Sub(c.servesSince) > stableAfter
	if isStable {
		c.pause.reset()
	}
	switch {
	case after == nil:
		return c.pause.next()
	case isStable:
		return min(*after, maxDrainDelay)
	}
	return max(min(*after, maxDrainDelay), c.pause.next())
}

func (c *connections) ended(e ended, now time.Time) []connectionEffect {
	switch e.id {
	case c.next:
		c.forgetNext()
		return []connectionEffect{pauseFor{c.pause.next()}}
	case c.current:
		c.current = 0
		c.isDraining, c.isEnding = false, false
		if c.isReady {
			return c.replace(now)
		}
		if now.Sub(c.servesSince) > stableAfter {
			c.pause.reset()
		}
		if c.next != 0 { // it is being opened
			return nil
		}
		return []connectionEffect{pauseFor{c.pause.next()}}
	}
	return nil
}
