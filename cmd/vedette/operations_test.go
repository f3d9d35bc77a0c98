package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/authorize"
)

// TestFlagsMapToOperations checks the operations that commands send.
func TestFlagsMapToOperations(t *testing.T) {
	c := newSampleClusters()
	server := serveClusters(t, c)
	for _, tt := range []struct{ command, want string }{
		{"delete pod none -n shop --cascade orphan --grace-period 7 --ignore-not-found --wait=false",
			`{"Kind":"pod","APIVersion":"","Namespace":"shop","Name":"none","LabelSelector":"","FieldSelector":"","All":false,"AllNamespaces":false,"Propagation":"orphan","GraceSeconds":7,"MissingOK":true,"NoWait":true`},
		{"delete pod none --ignore-not-found",
			`{"Kind":"pod","APIVersion":"","Namespace":"","Name":"none","LabelSelector":"","FieldSelector":"","All":false,"AllNamespaces":false,"Propagation":"background","GraceSeconds":null,"MissingOK":true,"NoWait":false`},
		{"delete pod none --ignore-not-found --now", `"GraceSeconds":1,`},
		{"delete pod none --ignore-not-found --grace-period 0", `"GraceSeconds":1,`},
		{"delete pod none --ignore-not-found --grace-period 0 --force", `"GraceSeconds":0,`},
		{"delete pod none --ignore-not-found --force", `"GraceSeconds":0,`},
		{"delete pods -l a=b -n x", `"Namespace":"x","Name":"","LabelSelector":"a=b"`},
		{"delete pods --field-selector metadata.name=none -A", `"Namespace":"","Name":"","LabelSelector":"","FieldSelector":"metadata.name=none","All":false,"AllNamespaces":true`},
		{"delete pods --all -n x", `"Namespace":"x","Name":"","LabelSelector":"","FieldSelector":"","All":true,"AllNamespaces":false`},
		{"scale deploy --all -n shop --replicas 7", `"Name":"lost","Replicas":7`},
		{"apply -f testdata/manifests/shop.yaml -n shop --prune --all --prune-allowlist core/v1/Service --cascade orphan",
			`"Kinds":["core/v1/Service"],"Namespaces":["shop"],"LabelSelector":"","All":true,"Keep":["uid of ConfigMap shop/colours","uid of Deployment.apps shop/web"],"Propagation":"orphan"`},
		{"apply -f testdata/refused.yaml --server-side", `"Strategy":"server-side","Fields":"","Compare":false`},
		{"apply -f testdata/refused.yaml --server-side --force-conflicts -n x", `"Namespace":"x","Strategy":"force-conflicts"`},
		{"apply -f testdata/refused.yaml", `"Strategy":"","Fields":"","Compare":true`},
		{"apply -f testdata/refused.yaml --validate=false", `"Fields":"ignore"`},
		{"apply -f testdata/refused.yaml --validate", `"Fields":"strict"`},
		{"scale deploy/api -n shop --replicas 7", `"Name":"api","Replicas":7`},
		{"rollout restart deploy -l a=b -n shop", `"Kind":"deploy","APIVersion":"","Namespace":"shop","Name":"","LabelSelector":"a=b","FieldSelector":""`},
		{"rollout undo deploy/api -n shop --to-revision 3", `"Name":"api","Revision":3,"RevisionsBack":0`},
		{"rollout undo -f testdata/manifests/shop.yaml -l tier=front", `"Kind":"Deployment","APIVersion":"apps/v1","Namespace":"","Name":"web","Revision":0`},
		{"logs api-1 -n shop -p --timestamps --since 90s --tail 3",
			`"Namespace":"shop","Name":"api-1","Container":"main","AllContainers":false,"Previous":true,"Follow":false,"TailLines":3,"SinceSeconds":90,"SinceTime":"0001-01-01T00:00:00Z","Timestamps":true`},
		{"logs api-1 -n shop --since-time 2026-01-31T12:00:00Z", `"TailLines":null,"SinceSeconds":null,"SinceTime":"2026-01-31T12:00:00Z"`},
		{"logs -l app=api -n shop", `"TailLines":10`},
	} {
		c.received = nil
		_, _, err := runCLI(t.Context(), append(strings.Fields(tt.command), "--account", "dev", "--user", "ann", "--server", server)...)
		var summary fanout.FailedError
		if err != nil && !errors.As(err, &summary) {
			t.Errorf("%s: %v", tt.command, err)
			continue
		}
		last := c.received[len(c.received)-1]
		got, err := json.Marshal(last.Args)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got), tt.want) || last.Account != "dev" {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.command, got, tt.want)
		}
		verb, _, _ := strings.Cut(tt.command, " ")
		if last.Args.Verb() != vedette.VerbLogs && (last.Requester.User != "ann" || !strings.HasPrefix(last.Origin, "vedette "+verb)) {
			t.Errorf("%s: got user %q and origin %q, want ann and vedette %s", tt.command, last.Requester.User, last.Origin, verb)
		}
	}
}

// TestDryRunIsSentOnlyForWrites checks that all operations which change objects are sent as
// dry runs, and that reads are not.
func TestDryRunIsSentOnlyForWrites(t *testing.T) {
	c := newSampleClusters()
	server := serveClusters(t, c)
	for _, command := range []string{"apply -f testdata/manifests -n shop --prune --all", "delete pods --all -n shop", "scale deploy/api -n shop --replicas 7 --current-replicas 2",
		"rollout restart deploy -l app!=x -n shop", "rollout undo deploy/api -n shop", "rollout pause deploy/api -n shop", "rollout resume deploy/api -n shop"} {
		c.received = nil
		if _, errOut, err := runCLI(t.Context(), append(strings.Fields(command), "--dry-run=server", "--account", "dev", "--server", server)...); err != nil && !strings.Contains(errOut, "lost") {
			t.Errorf("%s: %v %s", command, err, errOut)
		}
		dryRuns := 0
		for _, op := range c.received {
			if op.DryRun == op.Reads() {
				t.Errorf("%s: %s was sent with DryRun %t", command, op.Args.Verb(), op.DryRun)
			}
			if op.DryRun {
				dryRuns++
			}
		}
		if dryRuns == 0 {
			t.Errorf("%s: no dry run was sent", command)
		}
		c.received = nil
		local := append(strings.Fields(strings.Replace(command, " --prune --all", "", 1)), "--dry-run=client", "--server", "nowhere:1")
		_, _, err := runCLI(t.Context(), local...)
		if chooses := strings.Contains(command, "pods --all") || strings.Contains(command, " -l "); (err == nil) == chooses || len(c.received) > 0 {
			t.Errorf("%v: got error %v and %d operations", local, err, len(c.received))
		}
	}
}

// TestUserAccountsAuthorizeOperations checks that a server without Fiat uses --user-accounts,
// and that the error for a denied user names the flags.
func TestUserAccountsAuthorizeOperations(t *testing.T) {
	w := newShopWorld(t)
	authority, err := authorize.New(authorize.Config{Properties: func(context.Context, vedette.AccountName) (vedette.Properties, error) {
		return vedette.Properties{Permissions: &vedette.Permissions{Write: []string{"ops"}}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet, Dispatch: newSampleClusters(), Authorizer: authority}))
	t.Cleanup(server.Close)
	pause := []string{"rollout", "pause", "deploy/api", "-n", "shop", "--account", "dev", "--server", server.URL}
	_, errOut, err := runCLI(t.Context(), pause...)
	if !errors.Is(err, fanout.FailedError{Failed: 1, Total: 1}) || !strings.HasPrefix(errOut, "Error: dev: pause deployment.apps/api: Access denied to account dev - required authorization: WRITE: set the user with --user") {
		t.Errorf("got error output %q and error %v", errOut, err)
	}
	if out, _, err := runCLI(t.Context(), append(pause, "--user-accounts", "prod-1,dev")...); err != nil || out != "deployment.apps/api paused\n" {
		t.Errorf("got output %q and error %v", out, err)
	}
}

// blockedClusters are clusters in which the rollout of dev waits for that of prod-1.
type blockedClusters struct {
	*fakeClusters
	prodPrinted chan struct{}
}

// Execute blocks the rollout of dev until that of prod-1 was printed.
func (c blockedClusters) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	if op.Account != "dev" {
		return resultOutcome(vedette.RolloutStatus{Done: true, Message: "rolled out"})
	}
	select {
	case <-c.prodPrinted:
		return failedOutcome(404, "NotFound", "no")
	case <-ctx.Done():
		return failedOutcome(504, "Timeout", "prod-1 was not printed")
	}
}

// TestRolloutStatusIsPrintedLive checks that an account whose rollout waits or fails does not
// delay the output of other accounts.
func TestRolloutStatusIsPrintedLive(t *testing.T) {
	w := newShopWorld(t)
	c := blockedClusters{newSampleClusters(), make(chan struct{})}
	server := httptest.NewServer(api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet, Dispatch: c}))
	t.Cleanup(server.Close)
	out := newOutputBuffer()
	root := newRoot()
	root.SetArgs([]string{"rollout", "status", "deploy/api", "-n", "shop", "--account", "dev,prod-1", "--server", server.URL})
	root.SetOut(out)
	var errOut bytes.Buffer
	root.SetErr(&errOut)
	ended := make(chan error, 1)
	go func() { ended <- execute(t.Context(), root) }()
	if got := out.lines(t, 1); got[0] != "prod-1: rolled out" {
		t.Errorf("got %q", got)
	}
	close(c.prodPrinted)
	if err := <-ended; !errors.Is(err, fanout.FailedError{Failed: 1, Total: 2}) || !strings.HasPrefix(errOut.String(), "Error from dev (NotFound)") {
		t.Errorf("got error %v and error output %s", err, &errOut)
	}
}

// TestClusterTestsCurrentReplicas checks that the API server tests --current-replicas too, because the
// number can change after it was read.
func TestClusterTestsCurrentReplicas(t *testing.T) {
	c := newSampleClusters()
	if _, _, err := runCLI(t.Context(), "scale", "deploy/api", "-n", "shop", "--current-replicas", "2", "--replicas", "5", "--account", "dev", "--server", serveClusters(t, c)); err != nil {
		t.Fatal(err)
	}
	patch, ok := c.received[len(c.received)-1].Args.(vedette.PatchArgs)
	want := `[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":5}]`
	if !ok || string(patch.Patch) != want || patch.Type != vedette.JSONPatch {
		t.Errorf("got %+v, want a JSON patch %s", patch, want)
	}
}

func TestApplyFromStandardInput(t *testing.T) {
	c := newSampleClusters()
	root := newRoot()
	var out bytes.Buffer
	root.SetArgs([]string{"apply", "-f", "-", "--account", "dev", "--server", serveClusters(t, c)})
	root.SetIn(strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`))
	root.SetOut(&out)
	if err := execute(t.Context(), root); err != nil || out.String() != "configmap/a created\nconfigmap/b created\n" {
		t.Errorf("got output %q and error %v", out.String(), err)
	}
}

// TestRolloutStatusReportsFailure checks that a failed rollout and the timeout end the command.
func TestRolloutStatusReportsFailure(t *testing.T) {
	c := newSampleClusters()
	server := serveClusters(t, c)
	c.statuses = []vedette.RolloutStatus{{Message: "waiting"}, {Failed: true, Message: `deployment "api" exceeded its progress deadline`}}
	_, errOut, err := runCLI(t.Context(), "rollout", "status", "deploy/api", "-n", "shop", "--account", "dev", "--server", server)
	if !errors.Is(err, fanout.FailedError{Failed: 1, Total: 1}) || errOut != "Error: dev: deployment \"api\" exceeded its progress deadline\n" {
		t.Errorf("got error output %q and error %v", errOut, err)
	}
	c.statuses = []vedette.RolloutStatus{{Message: "1 of 2 updated replicas are available"}}
	_, errOut, err = runCLI(t.Context(), "rollout", "status", "deploy/api", "-n", "shop", "--account", "dev", "--timeout", "1ms", "--server", server)
	if !errors.Is(err, fanout.FailedError{Failed: 1, Total: 1}) || errOut != "Error: dev: timed out waiting for deployment.apps/api to be rolled out: 1 of 2 updated replicas are available\n" {
		t.Errorf("got error output %q and error %v", errOut, err)
	}
}

// followedLogs are clusters whose logs do not end.
type followedLogs struct {
	*fakeClusters
	logs map[string]*io.PipeReader
}

// Execute opens a log that does not end.
func (c followedLogs) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	if a, ok := op.Args.(vedette.LogsArgs); ok {
		return vedette.Outcome{State: vedette.Done, Status: 200, Stream: c.logs[a.Name]}
	}
	return c.fakeClusters.Execute(ctx, op)
}

// TestFollowedLinesArePrintedAtOnce checks that lines of followed logs are printed as soon as they are complete,
// and that an interrupt ends the logs without an error.
func TestFollowedLinesArePrintedAtOnce(t *testing.T) {
	first, one := io.Pipe()
	second, two := io.Pipe()
	w := newShopWorld(t)
	server := httptest.NewServer(api.New(api.Config{Store: w.Store, Hub: w.Hub, Fleet: w.Fleet,
		Dispatch: followedLogs{newSampleClusters(), map[string]*io.PipeReader{"api-1": first, "api-2": second}}}))
	t.Cleanup(server.Close)
	ctx, interrupt := context.WithCancel(t.Context())
	out := newOutputBuffer()
	root := newRoot()
	root.SetArgs([]string{"logs", "-l", "app=api", "-n", "shop", "-f", "-c", "main", "--account", "dev", "--server", server.URL})
	root.SetOut(out)
	root.SetErr(io.Discard)
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, root) }()
	write := func(w io.Writer, text string) {
		if _, err := io.WriteString(w, text); err != nil {
			t.Error(err)
		}
	}
	write(one, "half")
	write(two, "whole\n")
	if got := out.lines(t, 1); got[0] != "[dev/pod/api-2/main] whole" {
		t.Errorf("got %q", got)
	}
	write(one, " and half\n")
	if got := out.lines(t, 2); got[1] != "[dev/pod/api-1/main] half and half" {
		t.Errorf("got %q", got)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, w := range []*io.PipeWriter{one, two} {
		for {
			if _, err := io.WriteString(w, "more\n"); errors.Is(err, io.ErrClosedPipe) {
				break
			}
		}
	}
}

// TestReadFailuresAreReported checks commands that read an object which may not exist. A read that fails is not taken for an object
// that does not exist, and is reported although a second read would succeed.
func TestReadFailuresAreReported(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "web.yaml")
	text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n"
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"wait deployment web -n shop --for=create",
		"wait deployment web -n shop --for=delete --timeout 0",
		"diff -f " + manifest,
		"diff --all-accounts-against a000 deployment web -n shop",
		"describe deployment web -n shop",
	} {
		for _, tt := range []struct {
			name, answer, want string
			status             int
		}{
			{"by the cluster", `{"state":"failed","status":500,"reason":"InternalError","message":"etcd is down"}`, "etcd is down", 500},
			{"by the server", `{"error":{"kind":"denied","message":"you may not"}}`, "Error: a000: ", 403},
		} {
			t.Run(tt.name+" "+strings.ReplaceAll(command, manifest, "FILE"), func(t *testing.T) {
				t.Parallel()
				var requests atomic.Int32
				url := serveOperations(t, numberedAccounts(2), func(w http.ResponseWriter, _ *http.Request, op receivedOperation) {
					if op.Account == "a000" && requests.Add(1) == 1 {
						w.WriteHeader(tt.status)
						_, _ = io.WriteString(w, tt.answer)
						return
					}
					_, _ = io.WriteString(w, `{"state":"done","status":200,"objects":[{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"shop","uid":"1","resourceVersion":"1"}}]}`)
				})
				_, errOut, err := runCLI(t.Context(), append(strings.Fields(command), "--account", "a000,a001", "--server", url)...)
				if err == nil || !strings.Contains(errOut, tt.want) || strings.Contains(errOut, ": \n") {
					t.Errorf("got %q, %v", errOut, err)
				}
			})
		}
	}
}
