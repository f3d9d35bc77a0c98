package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/executor"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/admin"
)

const adminToken = "a-token-of-20-letters"

// newAdminAgent returns an agent with accounts in three states.
func newAdminAgent(t *testing.T) *Agent {
	t.Helper()
	account := func(name vedette.AccountName) Account {
		return Account{Name: name, Access: kube.Access{KubeconfigFile: "/k/" + string(name), KubeconfigContents: []byte("hunter2")},
			Selection: watch.Selection{OmitKinds: []string{"event"}}}
	}
	a := New(Config{Uplink: uplink.Config{Target: "passthrough:///nowhere.invalid:1", Creds: insecure.NewCredentials(), Agent: "a", Version: "v1"},
		Accounts: []Account{account("healthy"), account("failing"), account("new")}, Admin: admin.Guard{Token: adminToken},
		Executor: executor.Config{StopTimeout: time.Millisecond}}, slog.New(slog.DiscardHandler))
	a.accounts.get("healthy").setState("reporting", nil)
	a.accounts.get("failing").setState("reaching", errors.New("10.1.2.3 does not answer"))
	return a
}

// getAdmin requests a path with the token.
func getAdmin(a *Agent, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Authorization", "Bearer "+adminToken)
	w := httptest.NewRecorder()
	Handler(a, a.log).ServeHTTP(w, r)
	return w
}

// TestAdminPathsNeedTrust checks that others neither use the paths for operators nor see reasons.
func TestAdminPathsNeedTrust(t *testing.T) {
	a := newAdminAgent(t)
	for _, path := range []string{"/version", "/accounts", "/accounts/new/version", "/accounts/absent/version", "/operations", "/watches"} {
		w := httptest.NewRecorder()
		Handler(a, a.log).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "failing") {
			t.Errorf("%s: got %d %s, want 401", path, w.Code, w.Body)
		}
		if w := getAdmin(a, path); w.Code == http.StatusUnauthorized {
			t.Errorf("%s: the token is not accepted", path)
		}
	}
	w := httptest.NewRecorder()
	Handler(a, a.log).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
	if w.Code != http.StatusServiceUnavailable || strings.TrimSpace(w.Body.String()) != `{"ready":false}` {
		t.Errorf("/ready: got %d %s, want 503 without reasons", w.Code, w.Body)
	}
}

// TestReadyHasReasons checks what operators see of an agent without a server and with an account in
// trouble.
func TestReadyHasReasons(t *testing.T) {
	w := getAdmin(newAdminAgent(t), "/ready")
	var got readyView
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusServiceUnavailable || len(got.Reasons) != 1 || !strings.Contains(got.Reasons[0], "not connected to the server") {
		t.Errorf("got %d %+v, want the connection as the reason", w.Code, got)
	}
	if len(got.Warnings) != 1 || got.Warnings[0] != "account failing is reaching: 10.1.2.3 does not answer" {
		t.Errorf("got warnings %q", got.Warnings)
	}
}

// TestAccountsAreFilteredAndPaged checks filters and pages of /accounts.
func TestAccountsAreFilteredAndPaged(t *testing.T) {
	a := newAdminAgent(t)
	for _, tt := range []struct {
		query, want string
		total       string
	}{
		{"", "failing healthy new", "3"},
		{"?limit=1&offset=1", "healthy", "3"},
		{"?Config.Name=new", "new", "1"},
		{"?Config.Name=absent", "", "0"},
		{"?Config.Dynamic=false", "failing healthy new", "3"},
		{"?Config.Dynamic=true", "", "0"},
		{"?State.Name=DiscoveryError", "failing", "1"},
		{"?State.Name=healthy", "healthy", "1"},
		{"?State.Name=ConfigLoaded", "new", "1"},
		{"?State.Name=ConfigLoaded&Config.Name=healthy", "", "0"},
		{"?State.Name=Broken", "400", ""},
		{"?Config.Dynamic=maybe", "400", ""},
		{"?limit=x", "400", ""},
		{"?name=new", "400", ""},
	} {
		w := getAdmin(a, "/accounts"+tt.query)
		got := fmt.Sprint(w.Code)
		if w.Code == http.StatusOK {
			var views []accountView
			if err := json.Unmarshal(w.Body.Bytes(), &views); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, view := range views {
				names = append(names, string(view.Config.Name))
			}
			got = strings.Join(names, " ")
		}
		if got != tt.want || w.Header().Get(admin.TotalHeader) != tt.total {
			t.Errorf("%s: got %q of %q, want %q of %q", tt.query, got, w.Header().Get(admin.TotalHeader), tt.want, tt.total)
		}
	}
	body := getAdmin(a, "/accounts").Body.String()
	for _, want := range []string{`"KubeconfigFile":"/k/failing"`, `"OmitKinds":["event"]`, `"State":{"Name":"DiscoveryError","Phase":"reaching","Error":"10.1.2.3 does not answer"}`, `"Kinds":[]`} {
		if !strings.Contains(body, want) {
			t.Errorf("the response lacks %s: %s", want, body)
		}
	}
	if strings.Contains(body, "hunter2") {
		t.Error("the response contains a kubeconfig")
	}
}

// TestRefusalIsNoDiscoveryError checks that a refusal of the server is not an error of discovery, nor a wait.
func TestRefusalIsNoDiscoveryError(t *testing.T) {
	for state, want := range map[AccountStatus]string{
		{State: "reaching"}: stateConfigLoaded, {State: "reaching", Error: "x"}: stateDiscoveryError,
		{State: "registered"}: stateHealthy, {State: "standby"}: stateHealthy, {State: "refused", Error: "x"}: stateHealthy,
		{State: "reporting", Error: "waits for others", waiting: true}: stateHealthy,
		{State: "reporting"}: stateHealthy, {State: "reporting", Error: "x"}: stateDiscoveryError,
	} {
		if got := predecessorState(state); got != want {
			t.Errorf("%+v: got %s, want %s", state, got, want)
		}
	}
}

// TestClusterVersionAndRunningOperations uses a cluster that answers /version, and nothing else until
// the test ends.
func TestClusterVersionAndRunningOperations(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			fmt.Fprint(w, `{"major":"1","minor":"33","gitVersion":"v1.33.1","platform":"linux/amd64","unknown":[]}`)
			return
		}
		select {
		case arrived <- struct{}{}:
		default:
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	kubeconfig := fmt.Sprintf(`{clusters: [{name: a, cluster: {server: %q}}], contexts: [{name: a, context: {cluster: a}}]}`, server.URL)
	cluster, err := kube.Connect(kube.Access{KubeconfigContents: []byte(kubeconfig)}, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	a := newAdminAgent(t)
	for path, want := range map[string]int{"/accounts/healthy/version": 503, "/accounts/absent/version": 404} {
		if w := getAdmin(a, path); w.Code != want || !strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
	if err := a.accounts.get("healthy").initOperator(cluster, vedette.Cluster{UID: "u"}); err != nil {
		t.Fatal(err)
	}
	var version clusterVersion
	w := getAdmin(a, "/accounts/healthy/version")
	if err := json.Unmarshal(w.Body.Bytes(), &version); err != nil || version.GitVersion != "v1.33.1" || version.Minor != "33" {
		t.Errorf("got %d %s, %v", w.Code, w.Body, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.executor.Run(ctx) }()
	op := vedette.Operation{ID: "01J", Account: "healthy", Cluster: vedette.Cluster{UID: "u"}, RequestID: "r1", Deadline: time.Now().Add(time.Hour),
		Args: vedette.GetArgs{Target: vedette.Target{Kind: "pod", Namespace: "shop", Name: "web-0"}}}
	for submitted := false; !submitted; { // Run may not have begun
		a.executor.Submit(op, nil)
		submitted = a.executor.Running() == 1
	}
	<-arrived
	for query, want := range map[string]string{"": "1", "?account=healthy": "1", "?account=new": "0"} {
		w := getAdmin(a, "/operations"+query)
		hasOperation := strings.Contains(w.Body.String(), `"id":"01J","account":"healthy","verb":"get","kind":"pod","namespace":"shop","name":"web-0","request":"r1"`)
		if w.Header().Get(admin.TotalHeader) != want || hasOperation != (want == "1") {
			t.Errorf("%s: got %s of %s, want %s", query, w.Body, w.Header().Get(admin.TotalHeader), want)
		}
	}
	if w := getAdmin(a, "/operations?state=x"); w.Code != http.StatusBadRequest {
		t.Errorf("an unknown filter: got %d, want 400", w.Code)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if w := getAdmin(a, "/operations"); strings.TrimSpace(w.Body.String()) != "[]" {
		t.Errorf("got %s after the end, want none", w.Body)
	}
}
