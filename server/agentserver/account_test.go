package agentserver

import (
	"fmt"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestAccountsComeAndGo lets an agent name, get and deregister more accounts than it may have at a time.
// None of them may be counted afterwards.
func TestAccountsComeAndGo(t *testing.T) {
	memory := newMemoryBudget(1 << 30)
	s := &session{sessionAccounts: newSessionAccounts(), share: memory.open("host", func(error) {})}
	for i := range 3 * maxAccounts {
		name := vedette.AccountName(fmt.Sprint("account-", i))
		if !s.track(name, 100) || !s.track(name, 50) {
			t.Fatalf("account %d was rejected", i)
		}
		s.setTerm(name, 1)
		account, _ := s.tracked(name)
		s.clearTerm(name)
		s.untrack(name, account)
		if _, wasHeld := s.holdsTerm(name, 1); !wasHeld {
			t.Fatalf("account %d is forgotten while records may be in transit", i)
		}
	}
	if memory.used != 0 || len(s.named) != 0 || len(s.terms) > maxEndedTerms+2 {
		t.Errorf("got %d bytes, %d accounts and %d terms, want nothing but some terms", memory.used, len(s.named), len(s.terms))
	}
}

// TestAccountReturnsBeforeItIsGone names an account again between its deregistration and the end of that.
func TestAccountReturnsBeforeItIsGone(t *testing.T) {
	memory := newMemoryBudget(1 << 30)
	s := &session{sessionAccounts: newSessionAccounts(), share: memory.open("host", func(error) {})}
	s.track("a", 100)
	account, _ := s.tracked("a")
	s.track("a", 100)
	used := memory.used
	s.untrack("a", account)
	if _, known := s.tracked("a"); !known || memory.used != used || used == 0 {
		t.Errorf("got known %v and %d bytes, want the account with its %d bytes", known, memory.used, used)
	}
}
