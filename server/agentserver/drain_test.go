package agentserver

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestAgentsAreAskedToLeaveOneAfterTheOther checks when the agents of small and large fleets are to connect elsewhere.
func TestAgentsAreAskedToLeaveOneAfterTheOther(t *testing.T) {
	for _, tt := range []struct {
		agents     int
		interval   time.Duration
		last, most time.Duration
	}{
		{1, 0, 0, 0},
		{3, 5 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond},
		{600, 5 * time.Millisecond, 2990 * time.Millisecond, DrainSpread},
		{10_000, 0, 2990 * time.Millisecond, DrainSpread},
	} {
		srv := &Server{sessions: map[string]*session{}}
		budget := newMemoryBudget(1 << 30)
		for i := range tt.agents {
			share := budget.open("host", nil)
			srv.sessions[strconv.Itoa(i)] = &session{out: newOutbound(share)}
		}
		srv.askToLeave("it stops")
		var after []time.Duration
		for _, s := range srv.sessions {
			messages, _ := s.out.take()
			if len(messages) != 1 || messages[0].GetDrain().AfterMillis == nil || messages[0].GetDrain().GetStaysOpen() {
				t.Fatalf("%d agents: got %v, want one Drain of a server that ends", tt.agents, messages)
			}
			after = append(after, time.Duration(messages[0].GetDrain().GetAfterMillis())*time.Millisecond)
		}
		slices.Sort(after)
		if len(after) != tt.agents || after[0] != 0 || slices.Max(after) < tt.last || slices.Max(after) > tt.most {
			t.Errorf("%d agents: got %d pauses from %v to %v, want up to %v", tt.agents, len(after), after[0], slices.Max(after), tt.most)
		}
		if tt.interval > 0 && after[1]-after[0] != tt.interval {
			t.Errorf("%d agents: got %v between two of them, want %v", tt.agents, after[1]-after[0], tt.interval)
		}
		if !srv.Draining() {
			t.Errorf("%d agents: the server accepts others", tt.agents)
		}
	}
}
