package assignment

import (
	"testing"
	"time"
)

// TestFrozenServerTakesNothing lets the server stand still for ten seconds, in which no message is
// read. When it continues, it looks at the agents before their messages are read.
func TestFrozenServerTakesNothing(t *testing.T) {
	s := newSimulation(Config{})
	s.join("a1", "")
	s.step(AliveAnnounced{Member: 1, Interval: MinAliveInterval})
	for range 10 {
		s.wait(5 * time.Second)
		s.now = s.now.Add(10 * time.Second)
		s.frozen[1] = true
		for range 20 { // until the messages are read
			s.wait(ListenInterval)
			if s.fleet.members[1].liveness.isSilent() {
				t.Fatal("an agent counts as silent because the server was frozen")
			}
		}
		delete(s.frozen, 1)
	}
}
