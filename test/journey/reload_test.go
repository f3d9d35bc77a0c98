package journey

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/server"
	"github.com/vedette-io/vedette/test/apistub"
)

// countedCluster is a recorded cluster that counts the requests for feeds, by path.
type countedCluster struct {
	url string

	mu     sync.Mutex
	counts map[string]int    // "LIST /api/v1/pods"
	tokens map[string]string // of the last request
	hidden string            // the path of an object that is denied; empty for none
	denied string            // the token that is not accepted; empty for none
}

// startCluster starts a cluster with one pod and one ConfigMap.
func startCluster(t *testing.T, name string) *countedCluster {
	t.Helper()
	metadata := func(object, namespace string) string {
		return fmt.Sprintf(`{"name": %q, "namespace": %q, "uid": "%s-%s", "resourceVersion": "7"}`, object, namespace, name, object)
	}
	cluster, err := apistub.New([]json.RawMessage{
		json.RawMessage(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "%s", "resourceVersion": "5"}}`, name)),
		json.RawMessage(`{"apiVersion": "v1", "kind": "Pod", "metadata": ` + metadata("p", "kube-system") + `}`),
		json.RawMessage(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": ` + metadata("c", "kube-system") + `}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &countedCluster{counts: map[string]int{}, tokens: map[string]string{}}
	apiServer := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.isDenied(r) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if c.count(r) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "not for you"}`)
			return
		}
		cluster.ServeHTTP(w, r)
	}))
	apiServer.EnableHTTP2 = true
	apiServer.StartTLS()
	t.Cleanup(func() {
		apiServer.CloseClientConnections()
		apiServer.Close()
	})
	c.url = apiServer.URL
	return c
}

// count counts a request, and reports whether it is denied.
func (c *countedCluster) count(r *http.Request) (isDenied bool) {
	verb := "LIST"
	if r.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		verb = "VERIFY " + verb // feeds ask for whole objects
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[verb+" "+r.URL.Path]++
	c.tokens[verb+" "+r.URL.Path] = r.Header.Get("Authorization")
	return r.URL.Path == c.hidden
}

// isDenied reports whether a request has the token that is not accepted.
func (c *countedCluster) isDenied(r *http.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.denied != "" && r.Header.Get("Authorization") == "Bearer "+c.denied
}

// deny does not accept a token from now on.
func (c *countedCluster) deny(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied = token
}

// hide denies an object from now on.
func (c *countedCluster) hide(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hidden = path
}

// token returns the credentials of the last request.
func (c *countedCluster) token(request string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens[request]
}

// lists returns how often a core kind was listed.
func (c *countedCluster) lists(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts["LIST /api/v1/"+kind]
}

// requests returns how often the paths of the feeds of pods and ConfigMaps were requested.
func (c *countedCluster) requests() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts
	return fmt.Sprintf("pods: %d lists, %d watches; configmaps: %d lists, %d watches", n["LIST /api/v1/pods"], n["WATCH /api/v1/pods"],
		n["LIST /api/v1/configmaps"], n["WATCH /api/v1/configmaps"])
}

func (c *countedCluster) account(name vedette.AccountName, kinds ...string) agent.Account {
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: t}}], clusters: [{name: a, cluster: {server: %q, insecure-skip-tls-verify: true}}]}`, c.url)
	return agent.Account{Name: name, Access: kube.Access{KubeconfigContents: []byte(kubeconfig)}, Selection: watch.Selection{Kinds: kinds}}
}

// TestChangedAccountsDisturbNoOthers checks that accounts come, change and go, and that this costs the clusters of
// other accounts no request.
func TestChangedAccountsDisturbNoOthers(t *testing.T) {
	h := start(t, accountOf("plane", "", "namespaces"), redact.Config{})
	clusters := map[string]*countedCluster{}
	for _, name := range []string{"steady", "labelled", "wider", "late"} {
		clusters[name] = startCluster(t, name)
	}
	first := accountOf("plane", plane.Kubeconfig(), "namespaces")
	steady, labelled := clusters["steady"].account("steady", "pods"), clusters["labelled"].account("labelled", "pods")
	wider, late := clusters["wider"].account("wider", "pods"), clusters["late"].account("late", "pods", "configmaps")
	set := func(accounts ...agent.Account) { h.agent.SetAccounts(t.Context(), append(accounts, first)) }
	ready := func(name string, live int) {
		t.Helper()
		h.await(fmt.Sprintf("%s to have %d live feeds", name, live), func() bool {
			a := h.account(name)
			return a.Status == "Ready" && a.Feeds["live"] == live
		})
	}
	check := func(name, want string) {
		t.Helper()
		h.await(name+": "+want, func() bool { return clusters[name].requests() == want }) // a feed is live before its watch begins
	}
	const onlyPods = "pods: 1 lists, 1 watches; configmaps: 0 lists, 0 watches"

	set(steady, labelled, wider)
	ready("steady", 1)
	ready("labelled", 1)
	ready("wider", 1)
	for _, name := range []string{"steady", "labelled", "wider"} {
		check(name, onlyPods) // a watch that has not begun when its account changes is not counted
	}

	labelled.Properties.Environment = "production"
	wider.Selection.Kinds = []string{"pods", "configmaps"}
	set(steady, labelled, wider, late)
	ready("late", 2)
	ready("wider", 2)
	h.await("the new environment", func() bool {
		var a struct{ Environment string }
		h.get("/credentials/labelled", &a)
		return a.Environment == "production"
	})
	check("steady", onlyPods)
	check("labelled", onlyPods)
	check("wider", "pods: 1 lists, 2 watches; configmaps: 1 lists, 1 watches")

	set(steady, labelled)
	for _, gone := range []string{"wider", "late"} {
		h.await(gone+" to be gone", func() bool { return h.account(gone).Status != "Ready" })
	}
	check("steady", onlyPods)
	check("labelled", onlyPods)
	ready("plane", 1)
}

// accountWithTokens returns an account of the cluster whose kubeconfig is a file, and what sets the token
// in it.
func (c *countedCluster) accountWithTokens(t *testing.T, name vedette.AccountName, kinds ...string) (account agent.Account, setToken func(string)) {
	account = c.account(name, kinds...)
	contents := string(account.Access.KubeconfigContents)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	account.Access = kube.Access{KubeconfigFile: file}
	return account, func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Replace(contents, "token: t", "token: "+token, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRotatedCredentialsNeedNoList checks that an account with another token goes on without a list and without a
// new connection to the server, and that other accounts are not disturbed.
func TestRotatedCredentialsNeedNoList(t *testing.T) {
	h := start(t, accountOf("plane", "", "namespaces"), redact.Config{})
	steady, rotated := startCluster(t, "steady"), startCluster(t, "rotated")
	account, setToken := rotated.accountWithTokens(t, "rotated", "pods")
	setToken("t1")
	h.agent.SetAccounts(t.Context(), []agent.Account{steady.account("steady", "pods"), account})
	for _, name := range []string{"steady", "rotated"} {
		h.await(name+" to be live", func() bool { return h.account(name).Feeds["live"] == 1 })
	}
	h.agent.RereadCredentials() // nothing has changed
	setToken("t2")
	h.agent.RereadCredentials()
	h.await("the watch with the new token", func() bool { return rotated.token("WATCH /api/v1/pods") == "Bearer t2" })
	h.await("rotated to be Ready", func() bool { return h.account("rotated").Status == "Ready" })
	for cluster, want := range map[*countedCluster]string{rotated: "pods: 1 lists, 2 watches; configmaps: 0 lists, 0 watches",
		steady: "pods: 1 lists, 1 watches; configmaps: 0 lists, 0 watches"} {
		h.await(want, func() bool { return cluster.requests() == want }) // a feed is live before its watch begins
	}
	if strings.Contains(h.log.String(), "reconnecting to the cluster") {
		t.Error("the account was registered again")
	}
}

// TestCredentialsRotateWithoutUID checks that an account that may not read the uid of its cluster connects
// again once with other credentials, says why, and disturbs no other.
func TestCredentialsRotateWithoutUID(t *testing.T) {
	h := start(t, accountOf("plane", "", "namespaces"), redact.Config{})
	steady, rotated := startCluster(t, "steady"), startCluster(t, "rotated")
	rotated.hide("/api/v1/namespaces/kube-system")
	account, setToken := rotated.accountWithTokens(t, "rotated", "pods")
	setToken("t1")
	h.agent.SetAccounts(t.Context(), []agent.Account{steady.account("steady", "pods"), account})
	for _, name := range []string{"steady", "rotated"} {
		h.await(name+" to be live", func() bool { return h.account(name).Feeds["live"] == 1 })
	}
	setToken("t2")
	h.agent.RereadCredentials()
	h.await("the watch with the new token", func() bool { return rotated.token("WATCH /api/v1/pods") == "Bearer t2" })
	h.await("rotated to be Ready", func() bool { return h.account("rotated").Status == "Ready" })
	if n := rotated.lists("pods"); n != 1 {
		t.Errorf("got %d lists of the account, want that of the beginning", n)
	}
	const want = "pods: 1 lists, 1 watches; configmaps: 0 lists, 0 watches"
	h.await("the other account: "+want, func() bool { return steady.requests() == want }) // a feed is live before its watch begins
	if n := strings.Count(h.log.String(), "reconnecting to the cluster"); n != 1 || !strings.Contains(h.log.String(), "may not read the namespace kube-system") {
		t.Errorf("the account reconnected %d times, want once and why", n)
	}
}

// TestChangedKindsReachTheAccounts checks that changed kinds of the server reach the accounts that have none of their
// own, that the feeds that remain need no list, and that new agents get them.
func TestChangedKindsReachTheAccounts(t *testing.T) {
	h := start(t, accountOf("plane", "", "namespaces"), redact.Config{})
	cluster := startCluster(t, "kindless")
	h.agent.SetAccounts(t.Context(), []agent.Account{cluster.account("kindless")})
	live := func() int { return h.account("kindless").Feeds["live"] }
	h.await("the default kinds", func() bool {
		feeds, total := h.account("kindless").Feeds, 0
		for _, n := range feeds {
			total += n
		}
		return total > 0 && feeds["live"] == total && cluster.lists("pods") == 1
	})
	h.srv.Apply(server.Reloadable{Kinds: []string{"Pod", "ConfigMap"}})
	h.await("the new kinds", func() bool {
		return live() == 2 && cluster.lists("pods") == 1 && cluster.lists("configmaps") == 1
	})
	if !strings.Contains(h.log.String(), "the kinds to cache have changed") {
		t.Error("the change was not logged")
	}
}

// TestReturningAccountIsServed checks that an account which is removed and added again at once is served.
func TestReturningAccountIsServed(t *testing.T) {
	h := start(t, accountOf("plane", "", "namespaces"), redact.Config{})
	cluster := startCluster(t, "returning")
	for range 20 {
		h.agent.SetAccounts(t.Context(), []agent.Account{cluster.account("returning", "pods")})
		h.agent.SetAccounts(t.Context(), nil)
	}
	h.agent.SetAccounts(t.Context(), []agent.Account{cluster.account("returning", "pods")})
	h.await("the account to be Ready", func() bool { return h.account("returning").Status == "Ready" })
}

// TestConfigIsShown checks that the server shows which configuration of an agent is in effect, and why
// a changed one is not.
func TestConfigIsShown(t *testing.T) {
	h := start(t, accountOf("plane", "", "namespaces"), redact.Config{})
	since := time.Now().Add(-time.Hour)
	shown := func() (status, reason, message string, age time.Duration) {
		var agents struct {
			Items []struct {
				Conditions []struct {
					Status, Reason, Message string
					Since                   time.Time
				}
			}
		}
		h.get("/vedette/v1/agents", &agents)
		if len(agents.Items) != 1 || len(agents.Items[0].Conditions) != 1 {
			return "", "", "", 0
		}
		c := agents.Items[0].Conditions[0]
		return c.Status, c.Reason, c.Message, time.Since(c.Since)
	}
	for _, tt := range []struct {
		config                  configreload.Status
		status, reason, message string
	}{
		{configreload.Status{Since: since, Files: []string{"/a.yml"}}, "True", "InEffect", "/a.yml"},
		{configreload.Status{Since: since, Error: "hunter2", PublicError: "a.yml:1:1: why"}, "False", "Rejected", "the changed files cannot be used: a.yml:1:1: why"},
	} {
		h.agent.SetConfigStatus(tt.config)
		h.await("the condition "+tt.reason, func() bool {
			status, reason, message, age := shown()
			return status == tt.status && reason == tt.reason && message == tt.message && age.Round(time.Hour) == time.Hour
		})
	}
}
