package server

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/clouddriver"
)

// Reloadable is what may change while a server runs.
type Reloadable struct {
	Kinds       []string // as in agentserver.Config
	Credentials clouddriver.CredentialRules
}

// Apply puts changed settings into effect. It does not wait until agents have them, and must not be
// called twice at a time.
func (s *Server) Apply(r Reloadable) {
	s.cfg.Clouddriver.Reloadable.SetCredentialRules(r.Credentials)
	select {
	case <-s.kinds: // earlier kinds that are not in effect yet
	default:
	}
	s.kinds <- r.Kinds
}

// applyKinds passes changed kinds on until ctx ends.
func (s *Server) applyKinds(ctx context.Context, agentServer *agentserver.Server) error {
	inEffect := s.cfg.AgentServer.Kinds
	for {
		select {
		case <-ctx.Done():
			return nil
		case kinds := <-s.kinds:
			if !slices.Equal(kinds, inEffect) {
				inEffect = kinds
				s.log.Info("the kinds to cache have changed, asking agents to connect again", "kinds", kinds, "agents", agentServer.Agents())
				agentServer.SetKinds(ctx, kinds)
			}
		}
	}
}
