package main

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/history"
)

// serveClusters starts a server that sends operations to the clusters, and returns its URL.
func serveClusters(t *testing.T, c *fakeClusters) string {
	w := newShopWorld(t)
	seedHistory(t, w.Store)
	server := httptest.NewServer(api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet, StaleAfter: time.Hour, Dispatch: c, Accounts: fakeAccounts{}, Version: "v1.2.3"}))
	t.Cleanup(server.Close)
	return server.URL
}

// seedHistory stores some operations in the history.
func seedHistory(t *testing.T, s *store.Store) {
	t.Helper()
	now := time.Now()
	for _, row := range []history.Operation{
		{ID: "01J00000000000000000000001", Account: "dev", Verb: vedette.VerbApply, Target: "Deployment shop/web", Origin: "vedette apply",
			Requester: vedette.Requester{User: "ann", Claimed: "bob", Proven: "certificate CN=ann,O=shop", Address: "10.1.2.3"}, Kind: "Deployment.apps", Namespace: "shop", Name: "web",
			Server: "server-1", Agent: "agent-1", State: vedette.Done, Status: 200, Accepted: now.Add(-90 * time.Minute)},
		{ID: "01J00000000000000000000002", Account: "prod-1", Verb: vedette.VerbDelete, DryRun: true, Target: "Pod shop/web-0", Origin: "api", Server: "server-1", Agent: "agent-2",
			State: vedette.Failed, Status: 403, Reason: "Forbidden", Message: "pods \"web-0\" is forbidden", Accepted: now.Add(-80 * time.Minute)},
		{ID: "01J00000000000000000000003", Account: "gone", Verb: vedette.VerbScale, Target: "Deployment shop/web", Origin: "task 7", Server: "server-1", Requester: vedette.Requester{User: "eve", Claimed: "eve", Service: "orca", Address: "10.1.2.4"},
			State: history.Pending, Accepted: now.Add(-70 * time.Minute)},
	} {
		if err := s.BeginOperation(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		if row.State == history.Pending {
			continue
		}
		if row.Account == "dev" {
			row.Changes = []vedette.ObjectChange{{
				Key:    vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Namespace: "shop", Name: "web"},
				Before: "7", After: "9", Note: "the patch is cut: 1 of its 5 steps are left out",
				Patch: json.RawMessage(`[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":3},
					{"op":"add","path":"/metadata/labels","value":{"a":"\u001b[31mb"}},{"op":"test","path":"/spec/paused","value":true},{"op":"remove","path":"/spec/paused"}]`)}}
			row.Undoes = "01J00000000000000000000000"
		}
		row.Sent, row.Ended = row.Accepted.Add(time.Millisecond), row.Accepted.Add(20*time.Millisecond)
		if err := s.EndOperations(t.Context(), []history.Operation{row}); err != nil {
			t.Fatal(err)
		}
	}
}

// newSampleClusters returns clusters with the objects that all conversations start with.
func newSampleClusters() *fakeClusters {
	c := newFakeClusters()
	for _, account := range []vedette.AccountName{"dev", "prod-1"} {
		c.put(account, `{"kind":"Deployment","metadata":{"name":"api","namespace":"shop"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"api"}}}}`)
		c.put(account, `{"kind":"Pod","metadata":{"name":"api-1","namespace":"shop","labels":{"app":"api"}},"spec":{"containers":[{"name":"main"}]}}`)
		c.put(account, `{"kind":"Pod","metadata":{"name":"api-2","namespace":"shop","labels":{"app":"api"}},"spec":{"initContainers":[{"name":"init"}],"containers":[{"name":"main"},{"name":"side"}]}}`)
		for _, pod := range []string{"api-1", "api-2"} {
			c.logs[string(account)+" "+pod+" main"] = "one of " + pod + "\ntwo of " + pod + "\n"
		}
		c.logs[string(account)+" api-2 side"] = "no end of line"
	}
	c.put("dev", `{"kind":"Deployment","metadata":{"name":"lost","namespace":"shop"},"spec":{}}`)
	c.put("dev", `{"kind":"Pod","metadata":{"name":"cut","namespace":"shop"},"spec":{"containers":[{"name":"main"}]}}`)
	c.put("dev", `{"kind":"Pod","metadata":{"name":"young","namespace":"shop"},"spec":{"containers":[{"name":"main"}]}}`)
	c.put("dev", `{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"name":"web-1","namespace":"shop"},"spec":{"template":{"metadata":{"labels":{"app":"web"}},
		"spec":{"containers":[{"name":"main","image":"web:1","ports":[{"containerPort":80,"protocol":"TCP"}],"env":[{"name":"A","value":"b"}]}],"volumes":[{"name":"v","emptyDir":{}}]}}}}`)
	c.put("dev", `{"kind":"Node","metadata":{"name":"node-1"}}`)
	c.logs["dev cut main"] = "breaks: half a li"
	c.statuses = []vedette.RolloutStatus{{Message: "1 of 3 new replicas have been updated"}, {Message: "1 of 3 new replicas have been updated"},
		{Message: "2 of 3 updated replicas are available"}, {Done: true, Message: `deployment "web" successfully rolled out`}}
	return c
}

var cursorPattern = regexp.MustCompile(`\d{16}-\w{26}`)

var agePattern = regexp.MustCompile(`\b\d+(\.\d+)?(m|h|s|h\d+m|m\d+s)\b`)

// TestConversationsRunAsRecorded runs the commands of each golden file in order, in clusters that keep
// their changes, and compares the output with the file.
func TestConversationsRunAsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/operate/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			server := serveClusters(t, newSampleClusters())
			var got strings.Builder
			for line := range strings.SplitSeq(string(want), "\n") {
				if strings.HasPrefix(line, "# ") {
					got.WriteString(line + "\n")
				}
				if command, is := strings.CutPrefix(line, "$ vedette "); is {
					got.WriteString(line + "\n" + runCommand(t, server, strings.Fields(command)))
				}
			}
			golden.Compare(t, file, got.String())
		})
	}
}

func runCommand(t *testing.T, server string, args []string) string {
	out, errOut, err := runCLI(t.Context(), append(args, "--server", server)...)
	text := out
	if out != "" && !strings.HasSuffix(out, "\n") {
		text += "<no end of line>\n"
	}
	if errOut != "" {
		text += "--- error output\n" + errOut
	}
	var summary fanout.FailedError
	switch {
	case errors.As(err, &summary):
		text += "--- exit code 1: " + summary.Error() + "\n"
	case err != nil:
		text += "--- fails\n" + err.Error() + "\n"
	}
	text = timestampPattern.ReplaceAllString(text, "TIME")
	text = regexp.MustCompile(`ops get [0-9A-Z]{26}`).ReplaceAllString(text, "ops get ID")
	if args[0] == "ops" {
		text = cursorPattern.ReplaceAllString(text, "CURSOR")
		text = spacesPattern.ReplaceAllString(agePattern.ReplaceAllString(text, "N"), "  ")
	}
	return addressPattern.ReplaceAllString(text, "HOST")
}
