package hostile

import (
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette/wire"
)

// sendLies reports objects, versions, states and a configuration that cannot exist, in accounts of its own.
// Names of objects differ, because the server remembers those that it leaves out.
func (a *attacker) sendLies() {
	long := strings.Repeat("n", 10<<20)
	a.runSessions(8, 4, func(i int, conn *grpc.ClientConn) {
		account := fmt.Sprint("lies-", i)
		s := a.connectSession(conn, account)
		if s == nil {
			return
		}
		s.send(&wire.AgentMessage{Message: &wire.AgentMessage_ConfigStatus{ConfigStatus: &wire.ConfigStatus{AgeMillis: math.MinInt64,
			Reason: "\x1b[2J", Message: strings.Repeat("\x1b[2J\x00", 200<<10)}}})
		term := s.registerAccount(account)
		go s.discardMessages()
		send := func(step wire.Step) bool {
			return s.sendRecord(&wire.Record{Account: account, Term: term, Feed: pods(), Step: step})
		}
		upsert := func(name, version string) *wire.Record_Upsert {
			return &wire.Record_Upsert{Upsert: &wire.Upsert{Namespace: "default", Name: name, Uid: "one for all", ResourceVersion: version,
				ApiVersion: "v1", Created: math.MinInt64, Body: []byte(`{"metadata":{"namespace":"other","name":"other"}}`)}}
		}
		s.sendRecord(&wire.Record{Account: account, Term: term, Step: &wire.Record_Declare{Declare: &wire.Declare{Feeds: []*wire.DeclaredFeed{
			{Feed: pods(), Version: "v1", Plural: "pods", Namespaced: true}}}}})
		for n := range 100 {
			ok := send(upsert(fmt.Sprint(long, n), "1")) && send(upsert(fmt.Sprint("pod-", n), "-1")) && send(upsert("nul\x00", "1")) &&
				send(&wire.Record_Delete{Delete: &wire.Delete{Namespace: "default", Name: "never", ResourceVersion: "-5"}}) &&
				send(&wire.Record_End{End: &wire.End{ResourceVersion: "1"}}) &&
				send(&wire.Record_Status{Status: &wire.Status{State: long, Message: "\x1b[2J"}})
			if !ok || !a.pause(10*time.Millisecond) {
				return
			}
		}
		send(&wire.Record_Bookmark{Bookmark: &wire.Bookmark{ResourceVersion: long}})
		a.pause(100 * time.Millisecond)
	})
}
