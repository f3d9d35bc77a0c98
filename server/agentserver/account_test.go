package agentserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
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
		s.setTermLocked(name, 1) // nobody else uses s
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

// TestIndexesOfFormerTermsAreNotSent checks that an index is not sent after the assignment of another term, in which
// the agent would take it for the answer to its next Begin.
func TestIndexesOfFormerTermsAreNotSent(t *testing.T) {
	share := newMemoryBudget(1<<30).open("host", func(error) {})
	s := &session{sessionAccounts: newSessionAccounts(), share: share, out: newOutbound(share)}
	sent := func() (kinds string) {
		messages, _ := s.out.take()
		for _, m := range messages {
			kinds += fmt.Sprintf("%T ", m.GetMessage())
		}
		return strings.ReplaceAll(kinds, "*wire.ServerMessage_", "")
	}
	for _, tt := range []struct {
		term vedette.Term
		want string
	}{{1, ""}, {2, "Index "}, {3, ""}} {
		s.assign(assignment.Assignment{Account: "a", Role: assignment.Cacher, Term: 2})
		if got := sent(); got != "Assignment " {
			t.Fatalf("got %q, want an assignment", got)
		}
		if err := s.Index("a", tt.term, vedette.Feed{}, nil, true); err != nil {
			t.Fatal(err)
		}
		if got := sent(); got != tt.want {
			t.Errorf("index of term %d in term 2: got %q, want %q", tt.term, got, tt.want)
		}
	}
	s.assign(assignment.Assignment{Account: "a", Role: assignment.Standby})
	_ = sent()
	if err := s.Index("a", 2, vedette.Feed{}, nil, true); err != nil || sent() != "" {
		t.Error("got an index for a standby, want none")
	}
}
