package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
)

// serve returns the address of a server of a world.
func serve(t *testing.T, w *readtest.Fixture) string {
	server := httptest.NewServer(api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet, StaleAfter: time.Hour, Dispatch: newFakeClusters(), Version: "v1.2.3"}))
	t.Cleanup(server.Close)
	return server.URL
}

// runCLI runs a command and returns its output and error output.
func runCLI(ctx context.Context, args ...string) (out, errOut string, err error) {
	var o, e bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&o)
	root.SetErr(&e)
	err = execute(ctx, root)
	return o.String(), e.String(), err
}

// newShopWorld returns three clusters with sample objects.
func newShopWorld(t *testing.T) *readtest.Fixture {
	w := readtest.New(t)
	for _, account := range []vedette.AccountName{"dev", "prod-1", "prod-3"} {
		w.Account(account, "pods", "deployments", "nodes", "namespaces")
		w.Put(account, readtest.Node("node-1"), readtest.Deployment("shop", "web", 3), readtest.Pod("shop", "web-6c9f4-aaaaa", "web"))
	}
	w.Fleet.SetAgents(api.Agent{ID: "agent-1", Version: "v1.2.3", Hostname: "node-7", ZoneID: "vedette", Server: "server-1",
		Connected: time.Now().Add(-90 * time.Minute), LastHeartbeat: time.Now(),
		Config:   api.AgentConfig{Since: time.Now().Add(-30 * time.Hour), Reason: "Rejected", Message: "the changed files cannot be used: agent.yml:7:3: why"},
		Accounts: []api.AgentAccount{{Name: "dev", Role: api.Cacher}, {Name: "prod-1", Role: api.Standby}, {Name: "prod-3", Role: api.Refused, Message: "another cluster owns the name"}}})
	w.Put("prod-1", readtest.CrashingPod("shop", "broken-0"),
		readtest.PodOfAge("billing", "invoice-0", "invoice", 122*time.Hour+31*time.Minute)) // a minute older than the others
	return w
}

var (
	timestampPattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	addressPattern   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	lagPattern       = regexp.MustCompile(`\b\d+m?s( ago)?\b`)
	lagFieldPattern  = regexp.MustCompile(`(lagMs"?: )\d+`)
	spacesPattern    = regexp.MustCompile(`  +`)
)

// TestOutputIsAsRecorded compares the output of commands with golden files. The first line of each file
// is the command.
func TestOutputIsAsRecorded(t *testing.T) {
	w := newShopWorld(t)
	w.Fleet.Disconnect("prod-3")
	server := serve(t, w)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			command, _, _ := strings.Cut(string(want), "\n")
			args := append(strings.Fields(strings.TrimPrefix(command, "$ vedette ")), "--server", server)
			out, errOut, err := runCLI(t.Context(), args...)
			got := command + "\n" + out
			if errOut != "" {
				got += "--- error output\n" + errOut
			}
			if err != nil {
				got += "--- fails\n" + err.Error() + "\n"
			}
			isTable := !strings.Contains(command, "-o json") && !strings.Contains(command, "-o yaml")
			if isTable && (strings.HasPrefix(command, "$ vedette accounts") || strings.HasPrefix(command, "$ vedette feeds")) {
				got = spacesPattern.ReplaceAllString(got, "  ") // the width of a lag varies
			}
			got = lagFieldPattern.ReplaceAllString(got, "${1}N")
			got = addressPattern.ReplaceAllString(timestampPattern.ReplaceAllString(lagPattern.ReplaceAllString(got, "N"), "TIME"), "HOST")
			golden.Compare(t, file, got)
		})
	}
}

// TestKindsWithTheFieldsOfEvents reads an object of a kind that no agent reports, and whose fields have the names of those of Events, and
// other types.
func TestKindsWithTheFieldsOfEvents(t *testing.T) {
	c := newFakeClusters()
	c.put("dev", `{"apiVersion":"a.example.com/v1","kind":"Foo","metadata":{"name":"x","namespace":"shop"},"type":{"a":1},"count":"many","source":"git"}`)
	server := serveClusters(t, c)
	for args, want := range map[string]string{"get foos.a.example.com": "dev shop x", "describe foos.a.example.com": "Source: git"} {
		out, errOut, err := runCLI(t.Context(), append(strings.Fields(args), "-n", "shop", "--account", "dev", "--server", server)...)
		if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%s: got %q, %q, %v, want %q", args, out, errOut, err, want)
		}
	}
}
