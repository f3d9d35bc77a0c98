package agentserver

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/ingest"
)

// TestKindsChangeDuringHandshake checks that an agent that connects while the kinds change gets the new
// ones, or is asked to connect again.
func TestKindsChangeDuringHandshake(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	ended, cancel := context.WithCancel(t.Context())
	cancel() // so that SetKinds does not pause
	for range 1000 {
		srv := New(Config{Kinds: []string{"Pod"}}, ingest.New(ingest.Config{}, nil, nil, log), assigner.New("s", assignment.Config{}, nil, nil, log), nil, log)
		s := &session{server: srv, token: "t", out: newOutbound(srv.memory.open("host", func(error) {}))}
		srv.admit(s)
		var changed sync.WaitGroup
		changed.Go(func() { srv.SetKinds(ended, []string{"Job"}) })
		welcome := s.newWelcome(1)
		changed.Wait()
		messages, _ := s.out.take()
		if isOld := !slices.Equal(welcome.GetKinds(), []string{"Job"}); isOld != (len(messages) == 1) {
			t.Fatalf("got kinds %v, and then %v", welcome.GetKinds(), messages)
		}
	}
}
