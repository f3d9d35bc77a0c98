package hostile

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// memoryLimit is the maximum memory of the server, whatever it receives.
const memoryLimit = 512 << 20

// minAttackTime is the minimum duration of each attack.
const minAttackTime = 2 * time.Second

// TestHostileAgentHarmsNobody attacks a server with agents that lie in every message, from another host than
// two honest agents. The changes of the honest agents must stay visible, their accounts must not
// change, and the server's memory must stay within its limit.
func TestHostileAgentHarmsNobody(t *testing.T) {
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
			t.Logf("maximum memory of the server: %d MiB", s.peak()>>20)
		})
	}
	t.Logf("maximum memory of the server before: %d MiB", before>>20)
	if peak := s.peak(); peak > memoryLimit {
		t.Errorf("got %d MiB of memory, want at most %d", peak>>20, memoryLimit>>20)
	}
}

// runOperation runs an operation of the account whose ID the attacker knows.
func runOperation(t *testing.T, s *server, h *honestAgent, n int) {
	t.Helper()
	outcome, err := s.operate(fmt.Sprintf(`{"account":%q,"id":%q,"verb":"scale","kind":"deployment","namespace":"default","name":"web","replicas":%d}`, h.account, forgedID(n), n))
	if err != nil || !strings.Contains(outcome, "honest") || strings.Contains(outcome, "forged") {
		t.Errorf("operation: got outcome %s, error %v, want the outcome of its agent", outcome, err)
	}
}

// attacks are the attacks of hostile agents. Each runs until its context ends.
var attacks = []struct {
	name string
	run  func(*attacker)
}{
	{"others' accounts", (*attacker).impersonateAccounts},
	{"forged outcomes", (*attacker).forgeOutcomes},
	{"bombs without an account", func(a *attacker) { a.sendBombs(false) }},
	{"bombs in its own account", func(a *attacker) { a.sendBombs(true) }},
	{"records that never end", (*attacker).sendEndlessRecords},
	{"giant counts", (*attacker).sendGiantCounts},
	{"silence after connecting, and half a hello", (*attacker).openSilentConnections},
	{"thousands of streams", (*attacker).openManyStreams},
	{"bytes that are not UTF-8", (*attacker).sendInvalidUTF8},
	{"account errors, registrations and deregistrations", (*attacker).floodMessages},
	{"indexes that are not read", (*attacker).ignoreAnswers},
	{"heartbeats from the future", (*attacker).sendWrongTimes},
	{"large objects in its own accounts", (*attacker).sendLargeObjects},
	{"lies about its own objects", (*attacker).sendLies},
}

// slowAttack is the attack in TestSlowAgentHarmsNobody.
const slowAttack = "slowly"

// TestSlowAgentHarmsNobody runs an agent that reads and sends slowly beside two honest ones.
func TestSlowAgentHarmsNobody(t *testing.T) {
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
