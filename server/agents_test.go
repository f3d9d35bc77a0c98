package server

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/vedette-io/vedette/wire"
)

// TestAgentWithoutAccountsHasHeartbeat checks that an agent that has registered no account yet is shown with the time at which it was
// last heard.
func TestAgentWithoutAccountsHasHeartbeat(t *testing.T) {
	s, _ := startServer(t, config("sqlite:"+filepath.Join(t.TempDir(), "vedette.db")))
	awaitHealth(t, s, func(code int, _ string) bool { return code == http.StatusOK })
	began := time.Now()
	stream, err := wire.NewCachingClient(dialGRPC(t, s.GRPC().String())).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hello := &wire.Hello{AgentId: "a1", AgentVersion: "v1", OldestProtocol: 1, NewestProtocol: 1}
	if err := stream.Send(&wire.AgentMessage{Message: &wire.AgentMessage_Hello{Hello: hello}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil { // Welcome
		t.Fatal(err)
	}
	type agent struct {
		ID        string
		LastPulse *time.Time
	}
	read := func() []agent {
		resp, err := http.Get("http://" + s.REST().String() + "/vedette/v1/agents")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var list struct{ Items []agent }
		if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	// The agent joins just after its Welcome is sent.
	agents := read()
	for deadline := time.Now().Add(time.Minute); len(agents) == 0 && time.Now().Before(deadline); agents = read() {
		time.Sleep(5 * time.Millisecond)
	}
	if len(agents) != 1 || agents[0].ID != "a1" || agents[0].LastPulse == nil {
		t.Fatalf("got %+v, want a1 with a heartbeat", agents)
	}
	if at := *agents[0].LastPulse; at.Before(began.Add(-time.Second)) || at.After(time.Now()) {
		t.Errorf("got the last heartbeat at %v, want it since %v", at, began)
	}
}
