package assignment

import (
	"fmt"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestTooManyRolesWait checks that an agent which names tens of thousands of roles, while as many others of its account name as many, does
// not make everybody wait until all of them are compared, and that its permissions are not widened unseen.
func TestTooManyRolesWait(t *testing.T) {
	const roles = 43_000 // as many as fit into a registration
	for standbys, waits := range map[int]bool{5: false, maxComparedRoles/(2*roles) + 1: true} {
		s := newSimulation(Config{})
		register := func(agent string, read []string) {
			a := newAccount("prod", "", "")
			a.Properties.Permissions = &vedette.Permissions{Read: read}
			s.step(Registered{Member: s.agents[agent], Account: a, Request: s.newRequest()})
			for len(s.open) > 0 {
				if err := s.answer("prod", answerOK); err != nil {
					t.Fatal(err)
				}
			}
		}
		many := make([]string, roles)
		for i := range many {
			many[i] = fmt.Sprint("role-", i)
		}
		s.join("cacher", "")
		register("cacher", many[:1])
		for i := range standbys {
			agent := fmt.Sprint("standby-", i)
			s.join(agent, "")
			register(agent, append(many, agent)) // wider than what the cacher asks for
		}
		register("cacher", many)
		increase := s.fleet.accounts["prod"].increase
		if increase == nil || increase.isWaiting() != waits {
			t.Errorf("%d standbys: got the increase %+v, want that it waits: %v", standbys, increase, waits)
		}
	}
}

// TestPropertiesAreComparedByContent checks that properties are compared one by one, and by their content.
func TestPropertiesAreComparedByContent(t *testing.T) {
	p := vedette.Properties{Environment: "prod", Kinds: []string{"pod"}, Permissions: &vedette.Permissions{Read: []string{"b", "a"}}}
	same := p
	same.Permissions = &vedette.Permissions{Read: []string{"b", "a"}}
	if a, b := Prepare(p), Prepare(same); !a.equals(b) || len(a.differing(b)) > 0 {
		t.Errorf("equal properties differ in %v", a.differing(b))
	}
	other := vedette.Properties{Environment: "prod", OmitKinds: []string{"pod"}, Permissions: &vedette.Permissions{Read: []string{"a"}}}
	if got := fmt.Sprint(Prepare(p).differing(Prepare(other))); got != "[kinds omitKinds permissions]" || Prepare(p).equals(Prepare(other)) {
		t.Errorf("got differences in %s", got)
	}
}
