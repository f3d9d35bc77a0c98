package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
)

// TestLabelsOfManyAccounts labels an object in 500 accounts, of which 20 fail: each of them is named, with the words of
// its cluster, and all others are done.
func TestLabelsOfManyAccounts(t *testing.T) {
	var mu sync.Mutex
	patched := map[string]bool{}
	url := serveOperations(t, numberedAccounts(500), func(w http.ResponseWriter, _ *http.Request, op receivedOperation) {
		number := 0
		_, _ = fmt.Sscanf(op.Account, "a%d", &number)
		switch {
		case op.Verb == string(vedette.VerbGet):
			_, _ = io.WriteString(w, `{"state":"done","status":200,"objects":[{"kind":"Node","metadata":{"name":"n1","uid":"1","resourceVersion":"1"}}]}`)
		case number%25 == 7:
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"id":%q,"state":"failed","status":403,"reason":"Forbidden","message":"nodes \"n1\" is forbidden"}`, op.ID)
		default:
			mu.Lock()
			patched[op.Account] = true
			mu.Unlock()
			_, _ = fmt.Fprintf(w, `{"id":%q,"state":"done","status":200,"keys":[{"kind":"Node","name":"n1"}]}`, op.ID)
		}
	})
	out, errOut, err := runCLI(t.Context(), "label", "node", "n1", "tier=front", "--account", "*", "--server", url)
	if !errors.Is(err, fanout.FailedError{Failed: 20, Total: 500}) {
		t.Errorf("got %v, want 20 of 500, which exits with 1", err)
	}
	if n := strings.Count(out, "node/n1 labeled\n"); n != 480 || len(patched) != 480 {
		t.Errorf("got %d lines and %d patches, want 480", n, len(patched))
	}
	for i := range 500 {
		line := fmt.Sprintf("Error from a%03d (Forbidden): label node/n1: nodes \"n1\" is forbidden\n", i)
		if strings.Contains(errOut, line) != (i%25 == 7) {
			t.Errorf("a%03d: got %q", i, errOut)
		}
	}
}
