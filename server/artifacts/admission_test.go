package artifacts_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts"
)

// open fetches an artifact without reading it.
func open(t *testing.T, accounts *artifacts.Accounts, r artifacts.Request, timeout time.Duration) (func(), error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	content, err := accounts.Fetch(ctx, r)
	if err != nil {
		cancel()
		return nil, err
	}
	return func() { content.Close(); cancel() }, nil
}

const (
	soon     = time.Minute           // for what does not wait
	forNever = 20 * time.Millisecond // for what waits
)

func TestArtifactWaitsForAnotherToClose(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "content") })
	accounts := newAccounts(artifacts.Config{Limits: artifacts.Limits{MaxConcurrent: 1}, HTTPEnabled: true})
	request := artifacts.Request{Artifact: artifact("http/file", "no-auth-http-account", "", server)}
	closeFirst, err := open(t, accounts, request, soon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, accounts, request, forNever); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a second artifact to wait", err)
	}
	embedded := artifacts.Request{Artifact: artifact("embedded/base64", "embedded-artifact", "", "YQ==")}
	if closeEmbedded, err := open(t, accounts, embedded, soon); err != nil {
		t.Errorf("got %v, want content that the artifact contains without waiting", err)
	} else {
		closeEmbedded()
	}
	closeFirst()
	closeSecond, err := open(t, accounts, request, soon)
	if err != nil {
		t.Fatalf("got %v, want the second artifact after the first", err)
	}
	closeSecond()
	// Errors leave room, too.
	request.Artifact.Reference = "?"
	for range 3 {
		_, err := fetch(t, accounts, request.Artifact)
		expectError(t, "no URL", err, vedette.Invalid, "Malformed URL")
	}
}

// TestOneCallerLeavesRoom checks that slow artifacts of one caller do not stop those of another.
func TestOneCallerLeavesRoom(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "content") })
	accounts := newAccounts(artifacts.Config{Limits: artifacts.Limits{MaxConcurrent: 4}, HTTPEnabled: true})
	request := artifacts.Request{Artifact: artifact("http/file", "no-auth-http-account", "", server), Caller: "slow"}
	for range 3 {
		closeContent, err := open(t, accounts, request, soon)
		if err != nil {
			t.Fatal(err)
		}
		defer closeContent()
	}
	if _, err := open(t, accounts, request, forNever); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the caller's fourth artifact to wait", err)
	}
	request.Caller = "other"
	closeContent, err := open(t, accounts, request, soon)
	if err != nil {
		t.Fatalf("got %v, want room for another caller", err)
	}
	closeContent()
}
