package assignment

import (
	"sync/atomic"
	"time"
)

const (
	// listenInterval is how often the server looks which agents it has heard.
	listenInterval = 100 * time.Millisecond
	// MinAliveInterval is the shortest interval of messages that show that an agent's process runs.
	MinAliveInterval = 500 * time.Millisecond
)

// silence measures for how long nothing was heard of an agent that has announced at which interval it
// sends something.
//
// It counts steps of the server, and not time. A server that was frozen itself, or got no processor
// time, misses steps, and does not take its own pause for the silence of all agents. Nothing counts
// while the server does not read, for example because the database is slow.
type silence struct {
	receivingSince atomic.Int64  // since when the server waits for a message, as time since the agent joined; 0 while it does not wait
	interval       atomic.Int64  // at which the agent sends something; 0 if it has announced nothing
	isShared       atomic.Bool   // the agent has an account that other agents have, too
	sharedChanged  chan struct{} // holds a token after isShared has changed
	silentSteps    atomic.Int64  // how many steps in a row have heard nothing
	steadySteps    atomic.Int64  // how many steps in a row have heard the agent at most steadyLimit before

	// Owned by the silenceWatch:
	lastSince   int64
	wasSilent   bool
	foundShared bool // by the findShared that runs
}

// silentLimit is how long an agent may send nothing: a pause of four intervals never counts as
// silence, wherever between two messages it begins. With the default of 500 ms, an agent may pause
// for 2 seconds, and a standby takes over within 3.
func (s *silence) silentLimit() time.Duration {
	return time.Duration(s.interval.Load()) * 11 / 2
}

// steadyLimit is how long an agent may send nothing before doubts arise about the server's network.
func (s *silence) steadyLimit() time.Duration { return 2 * time.Duration(s.interval.Load()) }

// step looks whether a message has arrived since the last step.
func (s *silence) step() {
	since := s.receivingSince.Load()
	if since == 0 || since != s.lastSince {
		s.lastSince = since
		s.silentSteps.Store(0)
	} else {
		s.silentSteps.Add(1)
	}
	if s.interval.Load() == 0 || s.duration() > s.steadyLimit() {
		s.steadySteps.Store(0)
	} else {
		s.steadySteps.Add(1)
	}
}

// duration returns for how long nothing was heard.
func (s *silence) duration() time.Duration {
	return time.Duration(s.silentSteps.Load()) * listenInterval
}

// isSilent reports whether the agent has been silent for longer than it announced.
func (m *Member) isSilent() bool {
	return m.silence.interval.Load() > 0 && m.silence.duration() >= m.silence.silentLimit()
}

// wasHeardFor reports whether the agent was heard regularly for some time.
func (m *Member) wasHeardFor(d time.Duration) bool {
	return time.Duration(m.silence.steadySteps.Load())*listenInterval >= d
}

// BeginReceive records that the server waits for a message of the agent from now on.
func (m *Member) BeginReceive() {
	m.silence.receivingSince.Store(max(1, int64(time.Since(m.joinedAt))))
}

// EndReceive records that a message has arrived, and that the server waits for none until the next
// BeginReceive.
func (m *Member) EndReceive() { m.silence.receivingSince.Store(0) }

// SilentFor returns how long the server has waited for a message of the agent. Time in which the
// server did not wait for one does not count.
func (m *Member) SilentFor() time.Duration {
	since := m.silence.receivingSince.Load()
	if since == 0 {
		return 0
	}
	return time.Since(m.joinedAt) - time.Duration(since)
}

// SetAliveInterval records at which interval the agent announced to send messages; 0 for none.
func (m *Member) SetAliveInterval(d time.Duration) {
	if d > 0 {
		d = max(d, MinAliveInterval)
	}
	m.silence.interval.Store(int64(max(0, d)))
}

// IsShared reports whether the agent has an account that other agents have, too. Such an agent is
// asked to show more often that it is alive.
func (m *Member) IsShared() bool { return m.silence.isShared.Load() }

// SharedChanged returns a channel that is ready after IsShared has changed. It has one reader.
func (m *Member) SharedChanged() <-chan struct{} { return m.silence.sharedChanged }

// setShared sets isShared to what findShared has found.
func (s *silence) setShared() {
	if s.isShared.Swap(s.foundShared) != s.foundShared {
		select {
		case s.sharedChanged <- struct{}{}:
		default:
		}
	}
	s.foundShared = false
}

// lastReturned returns when the agent was last heard again after it had been silent.
func (m *Member) lastReturned() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.returnedAt
}
