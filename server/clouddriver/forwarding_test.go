package clouddriver_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// challengeError is the error of a sender who has proved nothing.
type challengeError struct{ error }

func (challengeError) Challenge() string { return `Vedette-Server challenge="c"` }

// failingForwarding returns one error for operations and another one for results.
type failingForwarding struct{ operation, result error }

func (f failingForwarding) Operation(http.ResponseWriter, *http.Request) error { return f.operation }
func (f failingForwarding) Result(http.ResponseWriter, *http.Request) error    { return f.result }

// TestForwardingIsAnswered checks how errors of what is forwarded are answered, and that both paths do not exist if they are switched off.
func TestForwardingIsAnswered(t *testing.T) {
	store := readtest.New(t).Store
	on := serve(t, clouddriver.Config{Store: store, Forwarding: failingForwarding{challengeError{errors.New("who are you")},
		vedette.Errorf(vedette.NotFound, "nobody waits")}})
	off := serve(t, clouddriver.Config{Store: store})
	for _, tt := range []struct {
		url, challenge, want string
		status               int
	}{
		{on + "/armory/agent/operations", `Vedette-Server challenge="c"`, `"message":"who are you"`, 401},
		{on + "/armory/agent/operationresults", "", `"message":"nobody waits"`, 404},
		{off + "/armory/agent/operations", "", "server.peers.restOperations: true", 405},
		{off + "/armory/agent/operationresults", "", "server.peers.restOperations: true", 404},
	} {
		response, err := http.Post(tt.url, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		raw, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		body := string(raw)
		if response.StatusCode != tt.status || response.Header.Get("WWW-Authenticate") != tt.challenge || !strings.Contains(body, tt.want) {
			t.Errorf("%s: got %s %v %s, want %d %s", tt.url, response.Status, response.Header, body, tt.status, tt.want)
		}
	}
}
