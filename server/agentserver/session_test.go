package agentserver_test

import (
	"testing"
	"testing/synctest"
)

// TestAgentsHaveSources checks that the store can count what agents cause for the source of their connection.
func TestAgentsHaveSources(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, dir)
		defer s.close()
		s.agents["a1"] = s.connect("a1", nil)
		synctest.Wait()
		members := s.assigner.Members()
		if len(members) != 1 || members[0].Source == "" {
			t.Errorf("got the agents %v, want one with a source", members)
		}
	})
}
