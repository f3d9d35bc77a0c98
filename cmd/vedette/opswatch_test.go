package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/store/history"
)

// TestOpsWatchShowsEachState watches the history while operations are accepted and end, among them a read, which is recorded when it
// has ended.
func TestOpsWatchShowsEachState(t *testing.T) {
	w := newShopWorld(t)
	server := httptest.NewServer(api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet, StaleAfter: time.Hour, Version: "v1"}))
	t.Cleanup(server.Close)
	row := func(n int, verb vedette.Verb, accepted time.Time) history.Operation {
		return history.Operation{ID: vedette.OperationID(fmt.Sprintf("01J%023d", n)), Account: "dev", Verb: verb, Target: "Pod shop/x", Server: "s", Accepted: accepted}
	}
	begin := func(o history.Operation) {
		t.Helper()
		if err := w.Store.BeginOperation(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	begin(row(1, vedette.VerbScale, time.Now().Add(-2*time.Hour)))
	out, _ := startCommand(t, "ops", "--watch", "--server", server.URL)
	out.lines(t, 2)
	scale := row(2, vedette.VerbScale, time.Now())
	begin(scale)
	out.lines(t, 3)
	scale.State, scale.Status, scale.Ended = vedette.Done, 200, time.Now()
	logs := row(3, vedette.VerbLogs, time.Now().Add(-time.Hour))
	logs.State, logs.Status, logs.Ended = vedette.Done, 200, time.Now()
	old := row(1, vedette.VerbScale, time.Now().Add(-2*time.Hour))
	old.State, old.Status, old.Ended = vedette.Lost, 504, time.Now()
	if err := w.Store.EndOperations(t.Context(), []history.Operation{scale, logs, old}); err != nil {
		t.Fatal(err)
	}
	out.lines(t, 6)
	begin(row(4, vedette.VerbScale, time.Now()))
	lines := out.lines(t, 7)
	var got []string
	for _, line := range lines[1:] {
		words := strings.Fields(line)
		got = append(got, words[0][25:]+" "+words[5])
	}
	if text := strings.Join(got, ", "); text != "1 pending, 2 pending, 1 lost, 3 done, 2 done, 4 pending" {
		t.Errorf("got %s", text)
	}
}
