package hostile

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// memoryLimit is what the server may take, whatever it is sent.
const memoryLimit = 512 << 20

// minAttackTime is how long each attack lasts.
const minAttackTime = 2 * time.Second

// TestHostileAgent has agents lie in every message to a server, from another host than
// two honest ones. Their changes stay visible, nothing of their accounts changes, and
// the server's memory stays within its limit.
func TestHostileAgent(t *testing.T) {
	s := startServer(t)
	agents := []*honestAgent{join(t, s, "shop"), join(t, s, "bank")}
	for i := range 10 {
		for _, h := range agents {
			h.change(t, i)
		}
	}
	t.Log("without attack:")
	for _, h := range agents {
		h.logLatencies(t)
	}
	before := s.peak()
	for n, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			withAttack(t, s, a.name, func() {
				for i, began := 0, time.Now(); i < 1 || time.Since(began) < minAttackTime; i++ {
					for _, h := range agents {
						h.change(t, 100+i)
					}
				}
				runOperation(t, s, agents[0], n)
			})
			for _, h := range agents {
				h.verifyStored(t)
				h.logLatencies(t)
			}
			t.Logf("the server took %d MiB at most", s.peak()>>20)
		})
	}
	t.Logf("the server took %d MiB before", before>>20)
	if peak := s.peak(); peak > memoryLimit {
		t.Errorf("the server took %d MiB; %d is the limit", peak>>20, memoryLimit>>20)
	}
}

// runOperation has an operation of the account carried out, whose id the enemy knows.
func runOperation(t *testing.T, s *server, h *honestAgent, n int) {
	t.Helper()
	outcome, err := s.operate(fmt.Sprintf(`{"account":%q,"id":%q,"verb":"scale","kind":"deployment","namespace":"default","name":"web","replicas":%d}`, h.account, forgedID(n), n))
	if err != nil || !strings.Contains(outcome, "honest") || strings.Contains(outcome, "forged") {
		t.Errorf("an operation ends otherwise than its agent says: %s, %v", outcome, err)
	}
}

// attacks is what hostile agents do, each until its context ends.
var attacks = []struct {
	name string
	run  func(*attacker)
}{
	{"others' accounts", (*attacker).impersonateAccounts},
	{"forged outcomes", (*attacker).forgeOutcomes},
	{"bombs before any account", func(a *attacker) { a.sendBombs(false) }},
	{"bombs into an account of its own", func(a *attacker) { a.sendBombs(true) }},
	{"records that never end", (*attacker).sendEndlessRecords},
	{"giant counts", (*attacker).sendGiantCounts},
	{"silence after connect, and half a hello", (*attacker).openSilentConnections},
	{"thousands of streams", (*attacker).openManyStreams},
	{"bytes that are no text", (*attacker).sendInvalidUTF8},
	{"troubles, registrations and deregistrations", (*attacker).floodMessages},
	{"indexes that are not read", (*attacker).ignoreAnswers},
	{"pulses from the future", (*attacker).sendWrongTimes},
	{"large objects of its own", (*attacker).sendLargeObjects},
}

// slowAttack is the attack of TestSlowAgent.
const slowAttack = "slowly"

// TestSlowAgent has an agent that reads and sends slowly beside two honest ones.
func TestSlowAgent(t *testing.T) {
	s := startServer(t)
	agents := []*honestAgent{join(t, s, "shop"), join(t, s, "bank")}
	withAttack(t, s, slowAttack, func() {
		for i := range 40 {
			for _, h := range agents {
				h.change(t, i)
			}
		}
	})
	for _, h := range agents {
		h.verifyStored(t)
		h.logLatencies(t)
	}
}
