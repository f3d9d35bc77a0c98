package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
)

// TestEventsOfFailedAccountsAreShownOnce watches the Events of two accounts, one of which fails once. Its Events are not shown again
// afterwards.
func TestEventsOfFailedAccountsAreShownOnce(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	event := func(name string) string {
		return fmt.Sprintf(`{"kind":"Event","apiVersion":"v1","metadata":{"namespace":"shop","name":%q,"uid":%q,"resourceVersion":"1"},"type":"Normal","reason":"Started","message":%q}`, name, name, name)
	}
	url := serveOperations(t, numberedAccounts(2), func(w http.ResponseWriter, _ *http.Request, op receivedOperation) {
		events := event("old-" + op.Account)
		if op.Account == "a000" {
			switch n := reads.Add(1); {
			case n == 2:
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, `{"state":"failed","status":500,"reason":"InternalError","message":"etcd is down"}`)
				return
			case n > 2:
				events += "," + event("new")
			}
		}
		_, _ = fmt.Fprintf(w, `{"state":"done","status":200,"objects":[%s]}`, events)
	})
	out, _ := startCommand(t, "events", "-n", "shop", "--account", "*", "--watch", "--no-headers", "--server", url)
	want := []string{"a000 shop <unknown> Normal Started / old-a000", "a001 shop <unknown> Normal Started / old-a001", "a000 shop <unknown> Normal Started / new"}
	if got := out.lines(t, len(want)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
