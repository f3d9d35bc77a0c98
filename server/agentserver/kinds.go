package agentserver

import (
	"context"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// reconnectPause is the pause between two agents that are asked to connect again: 10,000 agents take
// 50 seconds.
const reconnectPause = 5 * time.Millisecond

// SetKinds changes which kinds accounts without kinds of their own report. Connected agents are asked
// to connect again, one after the other, because they get the kinds when they connect. It returns when
// all have been asked, or ctx ends.
func (srv *Server) SetKinds(ctx context.Context, kinds []string) {
	if kinds == nil {
		kinds = vedette.DefaultKinds
	}
	srv.kinds.Store(&kinds)
	ticker := time.NewTicker(reconnectPause)
	defer ticker.Stop()
	for _, s := range srv.connected() {
		if got := s.kinds.Load(); got == nil || slices.Equal(*got, kinds) {
			continue // it has not connected yet, or has them
		}
		s.out.put(&wire.ServerMessage{Message: &wire.ServerMessage_Drain{Drain: &wire.Drain{Reason: "the kinds to cache have changed"}}})
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// connected returns the sessions in any order.
func (srv *Server) connected() []*session {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	sessions := make([]*session, 0, len(srv.sessions))
	for _, s := range srv.sessions {
		sessions = append(sessions, s)
	}
	return sessions
}
