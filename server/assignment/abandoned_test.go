package assignment

import (
	"errors"
	"fmt"
	"testing"
)

// TestRegistrationsOfAgentsThatLeft lets agents come and go while the store does not answer about an account. It must not be asked about
// each of them before it is asked about the one that stays, and what they registered takes no memory.
func TestRegistrationsOfAgentsThatLeft(t *testing.T) {
	s := newSimulation(Config{})
	s.join("first", "")
	s.step(Registered{Member: s.agents["first"], Account: newAccount("prod", "", ""), Request: s.newRequest()})
	for i := range 10 {
		agent := fmt.Sprint("a", i)
		s.join(agent, "")
		request := s.newRequest()
		s.step(Registered{Member: s.agents[agent], Account: newAccount("prod", "", ""), Request: request})
		s.step(Left{Member: s.agents[agent], Request: s.newRequest()})
		if s.replies[request] != 1 {
			t.Fatalf("got %d replies to the registration of an agent that has left, want 1", s.replies[request])
		}
	}
	if n := len(s.fleet.accounts["prod"].waiting); n > 0 {
		t.Errorf("%d registrations of agents that have left are kept", n)
	}
	s.join("last", "")
	s.step(Registered{Member: s.agents["last"], Account: newAccount("prod", "", ""), Request: s.newRequest()})
	s.step(Left{Member: s.agents["first"], Request: s.newRequest()})
	s.happened = nil
	open := s.open[0].(Admit)
	s.step(Admitted{Account: "prod", Attempt: open.Attempt, Err: errors.New("no answer")})
	for _, e := range s.happened {
		if admit, ok := e.(Admit); ok && s.fleet.accounts["prod"].job.member.ID != "last" {
			t.Errorf("the store is asked about %v, which has left", admit)
		}
	}
	if s.fleet.Phase("prod") != Admitting {
		t.Errorf("got phase %v, want that the store is asked about the agent that stays", s.fleet.Phase("prod"))
	}
}
