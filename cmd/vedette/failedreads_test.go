package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
)

// TestFailuresOfReadsCount runs commands whose first or last read fails in one of two accounts. The failure must be printed once and
// counted, because what the command shows is not everything.
func TestFailuresOfReadsCount(t *testing.T) {
	const denied = `{"error":{"kind":"denied","message":"you may not"}}`
	const forbidden = `{"state":"failed","status":403,"reason":"Forbidden","message":"RBAC says no"}`
	const absent = `{"state":"failed","status":404,"reason":"NotFound","message":"pods \"young\" not found"}`
	const object = `{"state":"done","status":200,"objects":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"young","namespace":"default"}}]}`
	file := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: young, namespace: default}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, command, verb string
		status              int
		answer, want        string // the error output; empty if nothing fails
	}{
		{"Events that the server refuses", "describe pod young", "events", 403, denied, "Error: b: list the Events of Pod/young: you may not"},
		{"Events that the cluster refuses", "describe pod young", "events", 200, forbidden, "Error from b (Forbidden): list the Events of Pod/young: RBAC says no"},
		{"an object that the server refuses", "apply --dry-run=server", "get", 403, denied, "Error: b: read pod/young: you may not"},
		{"an object that the cluster refuses", "apply --dry-run=server", "get", 200, forbidden, "Error from b (Forbidden): read pod/young: RBAC says no"},
		{"an object that does not exist", "apply --dry-run=server", "get", 200, absent, ""},
	} {
		server := serveOperations(t, []string{"a", "b"}, func(w http.ResponseWriter, _ *http.Request, op receivedOperation) {
			answer := object
			if op.Account == "b" && op.Verb == tt.verb {
				w.WriteHeader(tt.status)
				answer = tt.answer
			}
			if op.Verb == string(vedette.VerbEvents) && answer == object {
				answer = `{"state":"done","status":200}`
			}
			_, _ = io.WriteString(w, answer)
		})
		args := append(strings.Fields(tt.command), "--account", "*", "--server", server)
		if args[0] == "apply" {
			args = append(args, "-f", file)
		}
		_, errOut, err := runCLI(t.Context(), args...)
		failed := 0
		if failure, ok := errors.AsType[fanout.FailedError](err); ok {
			failed = failure.Failed
		} else if err != nil {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if got := strings.Count(errOut, tt.want); tt.want != "" && (got != 1 || failed != 1) || tt.want == "" && (failed != 0 || errOut != "") {
			t.Errorf("%s: got %d failures, and %q %d times in %q", tt.name, failed, tt.want, got, errOut)
		}
	}
}
