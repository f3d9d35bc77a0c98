package hostile

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// limit is what the server may take, whatever it is sent.
const limit = 512 << 20

// atLeast is how long each attack lasts.
const atLeast = 2 * time.Second

// TestHostileAgent has agents lie in every message to a server, from another host than
// two honest ones. Their changes stay visible, nothing of their accounts changes, and
// the server's memory stays within its limit.
func TestHostileAgent(t *testing.T) {
	s := startServer(t)
	agents := []*honest{join(t, s, "shop"), join(t, s, "bank")}
	for i := range 10 {
		for _, h := range agents {
			h.change(t, i)
		}
	}
	t.Log("without attack:")
	for _, h := range agents {
		h.report(t)
	}
	before := s.peak()
	for n, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			under(t, s, a.name, func() {
				for i, began := 0, time.Now(); i < 1 || time.Since(began) < atLeast; i++ {
					for _, h := range agents {
						h.change(t, 100+i)
					}
				}
				asked(t, s, agents[0], n)
			})
			for _, h := range agents {
				h.unharmed(t)
				h.report(t)
			}
			t.Logf("the server took %d MiB at most", s.peak()>>20)
		})
	}
	t.Logf("the server took %d MiB before", before>>20)
	if peak := s.peak(); peak > limit {
		t.Errorf("the server took %d MiB; %d is the limit", peak>>20, limit>>20)
	}
}

// asked has an operation of the account carried out, whose id the enemy knows.
func asked(t *testing.T, s *server, h *honest, n int) {
	t.Helper()
	outcome, err := s.do(fmt.Sprintf(`{"account":%q,"id":%q,"verb":"scale","kind":"deployment","namespace":"default","name":"web","replicas":%d}`, h.account, forgedID(n), n))
	if err != nil || !strings.Contains(outcome, "honest") || strings.Contains(outcome, "forged") {
		t.Errorf("an operation ends otherwise than its agent says: %s, %v", outcome, err)
	}
}

// attacks is what hostile agents do, each until its context ends.
var attacks = []struct {
	name string
	does func(*enemy)
}{
	{"others' accounts", (*enemy).foreign},
	{"forged outcomes", (*enemy).forge},
	{"bombs before any account", func(e *enemy) { e.bomb(false) }},
	{"bombs into an account of its own", func(e *enemy) { e.bomb(true) }},
	{"records that never end", (*enemy).neverEnd},
	{"giant counts", (*enemy).giantCounts},
	{"silence after connect, and half a hello", (*enemy).silence},
	{"thousands of streams", (*enemy).manyStreams},
	{"bytes that are no text", (*enemy).bytes},
	{"troubles, registrations and deregistrations", (*enemy).flood},
	{"indexes that are not read", (*enemy).unread},
	{"pulses from the future", (*enemy).future},
	{"large objects of its own", (*enemy).large},
}

// slowly is the attack of TestSlowAgent.
const slowly = "slowly"

// TestSlowAgent has an agent that reads and sends slowly beside two honest ones.
func TestSlowAgent(t *testing.T) {
	s := startServer(t)
	agents := []*honest{join(t, s, "shop"), join(t, s, "bank")}
	under(t, s, slowly, func() {
		for i := range 40 {
			for _, h := range agents {
				h.change(t, i)
			}
		}
	})
	for _, h := range agents {
		h.unharmed(t)
		h.report(t)
	}
}
