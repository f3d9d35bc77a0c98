package agentserver

import (
	"context"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
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
	ticker := time.NewTicker(reconnectPause)
	defer ticker.Stop()
	for _, s := range srv.replaceKinds(kinds) {
		s.out.put(newDrain("the kinds to cache have changed", 0, true))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// replaceKinds replaces the kinds, and returns the sessions whose agents got others, in any order.
func (srv *Server) replaceKinds(kinds []string) (outdated []*session) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.kinds = kinds
	for _, s := range srv.sessions {
		if s.kinds != nil && !slices.Equal(s.kinds, kinds) {
			outdated = append(outdated, s)
		}
	}
	return outdated
}

func (srv *Server) kindsFor(s *session) []string {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	s.kinds = srv.kinds
	return s.kinds
}
