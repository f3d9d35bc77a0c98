package assigner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
)

func (w fixture) connectFrom(id vedette.AgentID, host string) *Member {
	return w.Join(assignment.Agent{ID: id, Hostname: host, Version: "v1", Connected: time.Now()}, func(assignment.Assignment) {})
}

// heartbeats lets agents send heartbeats for some time.
func heartbeats(d time.Duration, members ...*Member) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(3 * time.Second) {
		for _, m := range members {
			m.SetFreshness(time.Now())
		}
	}
}

// TestAgentsWithOneIDAreNamed checks that agents that share an ID are named to operators, once in
// the log, until one of them leaves.
func TestAgentsWithOneIDAreNamed(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		first, other := w.connectFrom("a", "host-1"), w.connectFrom("b", "host-3")
		heartbeats(10*time.Minute, first, other)
		second := w.connectFrom("a", "host-2")
		heartbeats(30*time.Second, first, second, other)
		if first.Notice() != "" || w.hasLine("several agents have the same ID") {
			t.Errorf("after 30 s: got %q, want nothing, as during a rolling update", first.Notice())
		}
		heartbeats(10*time.Minute, first, second, other)
		if !strings.Contains(first.Notice(), "also that of the agent on host host-2") || !strings.Contains(second.Notice(), "also that of the agent on host host-1") || other.Notice() != "" {
			t.Errorf("got %q, %q and %q, want each to name the other", first.Notice(), second.Notice(), other.Notice())
		}
		if n := w.countLines("several agents have the same ID", "host-1", "host-2"); n != 1 {
			t.Errorf("got %d log lines, want 1", n)
		}
		second.Leave(t.Context())
		heartbeats(time.Minute, first, other)
		if first.Notice() != "" {
			t.Errorf("after one has left: got %q", first.Notice())
		}
	})
}

// TestRestartedAgentIsNoDuplicate checks that an agent is not taken for a duplicate of the session
// that it had before it was restarted.
func TestRestartedAgentIsNoDuplicate(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		before := w.connectFrom("a", "host-1")
		heartbeats(time.Minute, before)
		after := w.connectFrom("a", "host-1")
		heartbeats(10*time.Minute, after)
		if before.Notice() != "" || after.Notice() != "" || w.hasLine("several agents have the same ID") {
			t.Errorf("got %q and %q, want nothing", before.Notice(), after.Notice())
		}
	})
}

// TestManyAgentsWithOneID checks that the texts about the agents of a whole fleet with one ID stay short.
func TestManyAgentsWithOneID(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		var members []*Member
		for i := range 300 {
			members = append(members, w.connectFrom("a", fmt.Sprint("host-", i)))
		}
		heartbeats(2*time.Minute, members...)
		for _, m := range []*Member{members[0], members[3], members[299]} {
			if notice := m.Notice(); len(notice) > 1000 || !strings.Contains(notice, " and 294 more: set agentId") || strings.Contains(notice, "host "+m.Hostname+" ") {
				t.Errorf("agent on %s: got %q, want the names of five others and the number of the rest", m.Hostname, notice)
			}
		}
		if n := w.countLines("several agents have the same ID", "and 295 more"); n != 1 {
			t.Errorf("got %d log lines, want 1", n)
		}
	})
}
