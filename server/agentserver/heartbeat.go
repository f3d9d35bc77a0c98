package agentserver

import (
	"context"
	"time"

	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/wire"
)

// maxSilence is how long an agent may be silent.
func (s *session) maxSilence() time.Duration { return 3 * s.server.cfg.Heartbeat }

// sendHeartbeats sends heartbeats, and ends the session as soon as the agent has been silent
// for three intervals.
func (s *session) sendHeartbeats(ctx context.Context) error {
	ticker := time.NewTicker(s.server.cfg.Heartbeat)
	defer ticker.Stop()
	timer := time.NewTimer(s.maxSilence())
	defer timer.Stop()
	pauses := pauseDetector{interval: s.server.cfg.Heartbeat, awakeSince: time.Now(), lastSeen: time.Now()}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			awake := pauses.awakeFor(time.Now())
			remaining := s.maxSilence() - min(awake, s.member.SilentFor())
			if remaining <= 0 {
				return errHeartbeatTimeout
			}
			timer.Reset(remaining)
		case <-ticker.C:
			pauses.awakeFor(time.Now())
			s.out.put(s.newHeartbeat(time.Now()))
		case <-s.member.SharedChanged(): // so that the agent need not wait for the next one
			s.out.put(s.newHeartbeat(time.Now()))
		case reason := <-s.member.AskedToLeave():
			s.out.put(newDrain(reason, 0, false)) // a server that does not stay open is tried last
		}
	}
}

func (s *session) newHeartbeat(now time.Time) *wire.ServerMessage {
	h := &wire.Heartbeat{UnixMillis: now.UnixMilli(), Stamp: now.Sub(s.welcomedAt).Milliseconds(),
		AliveMillis: uint32(s.aliveInterval().Milliseconds())}
	if last := s.lastRead.Load(); last != nil {
		h.AgentMillis, h.AgentRead = last.sentMillis, last.at.Sub(s.welcomedAt).Milliseconds()
	}
	return &wire.ServerMessage{Message: &wire.ServerMessage_Heartbeat{Heartbeat: h}}
}

// readHeartbeat is the last heartbeat of the agent that was read. The server returns it, so that the
// agent learns how late messages of the server are.
type readHeartbeat struct {
	sentMillis int64 // as the agent wrote it
	at         time.Time
}

// heartbeatRead notes that a heartbeat of the agent was read. The first is answered at once, because
// until then the agent knows only how long it took to connect.
func (s *session) heartbeatRead(h *wire.AgentHeartbeat, now time.Time) {
	if s.lastRead.Swap(&readHeartbeat{h.GetSentMillis(), now}) == nil && h.GetSentMillis() != 0 {
		s.out.put(s.newHeartbeat(now))
	}
}

// aliveInterval is how often the agent is to show that it is alive, besides its heartbeats; 0 for
// never. It is needed only if another agent could take over. It follows the interval of heartbeats,
// because a long one says that the network is slow or expensive.
func (s *session) aliveInterval() time.Duration {
	if !s.member.IsShared() {
		return 0
	}
	return max(assignment.MinAliveInterval, s.server.cfg.Heartbeat/6)
}

// pauseDetector measures for how long this process has run without a pause. After a pause, for
// example of a frozen machine, messages of agents may wait to be read, and nothing follows from
// their absence.
type pauseDetector struct {
	interval             time.Duration // between calls of awakeFor, at most
	awakeSince, lastSeen time.Time
}

// maxDelay is how late a call may be without a pause of the process.
const maxDelay = time.Second

func (p *pauseDetector) awakeFor(now time.Time) time.Duration {
	if now.Sub(p.lastSeen) > p.interval+maxDelay {
		p.awakeSince = now
	}
	p.lastSeen = now
	return now.Sub(p.awakeSince)
}
