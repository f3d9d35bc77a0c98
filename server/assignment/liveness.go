package assignment

import (
	"maps"
	"slices"
	"time"
)

const (
	// ListenInterval is how often a Tick says which agents were heard.
	ListenInterval = 100 * time.Millisecond
	// MinAliveInterval is the shortest interval of messages that show that an agent's process runs.
	MinAliveInterval = 500 * time.Millisecond
)

// liveness measures for how long nothing was heard of an agent that has announced at which interval it
// sends something.
//
// It counts ticks of the server, and not time. A server that was frozen itself, or got no processor
// time, misses ticks, and does not take its own pause for the silence of all agents. Nothing counts
// while the server does not read, for example because the database is slow.
type liveness struct {
	interval    time.Duration // at which the agent sends something; 0 if it has announced nothing
	receiving   int64         // since when the server waits for a message, at the last tick
	missedTicks int64         // how many ticks in a row have heard nothing
	heardTicks  int64         // how many ticks in a row have heard the agent at most doubtAfter before
	wasSilent   bool
	returnedAt  time.Time // when the agent was last heard again after it had been silent
	isShared    bool      // the agent has an account that other agents have, too
}

func (f *Fleet) setAliveInterval(e AliveAnnounced) {
	m := f.members[e.Member]
	if m == nil {
		return
	}
	m.liveness.interval = 0
	if e.Interval > 0 {
		m.liveness.interval = max(e.Interval, MinAliveInterval)
	}
}

// silentAfter is how long an agent may send nothing: a pause of four intervals never counts as
// silence, wherever between two messages it begins. With the default of 500 ms, an agent may pause
// for 2 seconds, and a standby takes over within 3.
func (l *liveness) silentAfter() time.Duration { return l.interval * 11 / 2 }

// doubtAfter is how long an agent may send nothing before doubts arise about the server's network.
func (l *liveness) doubtAfter() time.Duration { return 2 * l.interval }

// tick notes since when the server waits for a message, which shows whether one has arrived since the last tick.
func (l *liveness) tick(receiving int64) {
	if receiving == 0 || receiving != l.receiving {
		l.receiving, l.missedTicks = receiving, 0
	} else {
		l.missedTicks++
	}
	if l.interval == 0 || l.unheard() > l.doubtAfter() {
		l.heardTicks = 0
	} else {
		l.heardTicks++
	}
}

// unheard returns for how long nothing was heard.
func (l *liveness) unheard() time.Duration { return time.Duration(l.missedTicks) * ListenInterval }

// heardFor returns for how long the agent was heard regularly.
func (l *liveness) heardFor() time.Duration { return time.Duration(l.heardTicks) * ListenInterval }

// isSilent reports whether the agent has been silent for longer than it announced.
func (l *liveness) isSilent() bool { return l.interval > 0 && l.unheard() >= l.silentAfter() }

// wasHeardFor reports whether the agent was heard regularly for some time.
func (l *liveness) wasHeardFor(d time.Duration) bool {
	return l.heardFor() >= d
}

// listen notes which agents were heard since the last tick.
func (f *Fleet) listen(e Tick) {
	for id, m := range f.members {
		m.liveness.tick(e.Receiving[id])
		isSilent := m.liveness.isSilent()
		if m.liveness.wasSilent && !isSilent {
			m.liveness.returnedAt = f.now
		}
		m.liveness.wasSilent = isSilent
	}
}

// findShared determines which agents have an account that other agents have, too.
func (f *Fleet) findShared() {
	shared := map[*member]bool{}
	for _, a := range f.accounts {
		if len(a.candidates) > 1 || a.elsewhere != nil || f.hasRemote(a) {
			for _, m := range a.candidates {
				shared[m] = true
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.members)) {
		if m := f.members[id]; m.liveness.isShared != shared[m] {
			m.liveness.isShared = shared[m]
			f.emit(SharedChanged{id, shared[m]})
		}
	}
}
