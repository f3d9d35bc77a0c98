package uplink

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/wire"
)

// sentMessages is a stream that keeps what is sent.
type sentMessages struct {
	grpc.BidiStreamingClient[wire.AgentMessage, wire.ServerMessage]
	messages *[]*wire.AgentMessage
}

func (s sentMessages) Send(m *wire.AgentMessage) error {
	*s.messages = append(*s.messages, m)
	return nil
}

// TestConfigIsReported checks that a server gets the configuration's status when it connects and when
// it changes, with its age at that time.
func TestConfigIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := New(Config{}, outbox.New(1<<20), nil, nil, slog.New(slog.DiscardHandler))
		inEffect := ConfigStatus{Since: time.Now(), Current: true, Reason: "InEffect", Message: "/a.yml"}
		u.ReportConfig(inEffect) // there is no connection yet
		time.Sleep(5 * time.Second)
		var sent []*wire.AgentMessage
		l := newLink(u)
		l.stream = sentMessages{messages: &sent}
		initial := u.activateLink(l, "s1")
		if len(initial) != 1 || initial[0].GetConfigStatus().GetAgeMillis() != 5000 || initial[0].GetConfigStatus().GetReason() != "InEffect" {
			t.Errorf("got %v at the start of the connection", initial)
		}
		u.ReportConfig(inEffect)
		rejected := ConfigStatus{Since: inEffect.Since, Reason: "Rejected", Message: strings.Repeat("\xffwhy", 1000)}
		u.ReportConfig(rejected)
		u.ReportConfig(rejected)
		if len(sent) != 1 || sent[0].GetConfigStatus().GetCurrent() || sent[0].GetConfigStatus().GetReason() != "Rejected" {
			t.Fatalf("got %v, want one message", sent)
		}
		if message := sent[0].GetConfigStatus().GetMessage(); len(message) > maxConfigMessage || !strings.HasPrefix(message, "\ufffdwhy") {
			t.Errorf("got %d bytes: %.20q", len(message), message)
		}
	})
}

// TestConfigOfTheFuture checks that a clock that was set back gives no negative age.
func TestConfigOfTheFuture(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	if got := (ConfigStatus{Since: now.Add(time.Hour)}).message(now).GetConfigStatus().GetAgeMillis(); got != 0 {
		t.Errorf("got an age of %d ms", got)
	}
}
