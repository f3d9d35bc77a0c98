package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/readtest"
)

// fleetOfClusters are the clusters of accounts: what they serve, and objects that no agent reports.
type fleetOfClusters struct {
	mu      sync.Mutex
	served  map[vedette.AccountName][]string // group/version/plural/Kind,short,+category
	objects map[string]string                // by account, kind, namespace and name
	status  map[vedette.AccountName]int      // of answers about objects; 0 for the normal ones
	asked   []vedette.Operation
}

func (c *fleetOfClusters) do(_ context.Context, op vedette.Operation) vedette.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, op)
	switch a := op.Args.(type) {
	case vedette.DiscoverArgs:
		return c.discover(op.Account)
	case vedette.GetArgs:
		if status := c.status[op.Account]; status != 0 {
			return vedette.Outcome{State: vedette.Failed, Status: status, Message: "the API server is down"}
		}
		manifest, ok := c.objects[fmt.Sprintf("%s %s %s/%s", op.Account, a.Kind, a.Namespace, a.Name)]
		if !ok {
			return vedette.Outcome{State: vedette.Failed, Status: 404, Reason: "NotFound", Message: fmt.Sprintf("%s %q not found", a.Kind, a.Name)}
		}
		return vedette.Outcome{State: vedette.Done, Status: 200, Objects: []json.RawMessage{json.RawMessage(manifest)}}
	}
	return vedette.Outcome{State: vedette.Failed, Status: 400, Message: "unexpected operation"}
}

func (c *fleetOfClusters) discover(account vedette.AccountName) vedette.Outcome {
	if c.served[account] == nil {
		return vedette.Outcome{State: vedette.Failed, Status: 504, Message: "the agent did not answer by the deadline"}
	}
	list := []map[string]any{}
	for _, text := range c.served[account] {
		parts := strings.Split(text, "/")
		names := strings.Split(parts[3], ",")
		kind := map[string]any{"group": parts[0], "version": parts[1], "versions": []string{parts[1]}, "plural": parts[2], "kind": names[0], "namespaced": true,
			"verbs": []string{"get", "list"}}
		for _, name := range names[1:] {
			if category, is := strings.CutPrefix(name, "+"); is {
				kind["categories"] = []string{category}
			} else {
				kind["shortNames"] = []string{name}
			}
		}
		list = append(list, kind)
	}
	result, err := json.Marshal(map[string]any{"kinds": list})
	if err != nil {
		panic(err)
	}
	return vedette.Outcome{State: vedette.Done, Status: 200, Result: result}
}

func (c *fleetOfClusters) set(account vedette.AccountName, served ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served[account] = served
}

// newKindsWorld returns three accounts: dev and prod serve other kinds of the same names, and the agent of lost is gone.
func newKindsWorld(t *testing.T) (*validatingClient, *readtest.Fixture, *fleetOfClusters) {
	w := readtest.New(t)
	for _, account := range []vedette.AccountName{"dev", "lost", "prod"} {
		w.Account(account, "pods")
		w.Put(account, readtest.Pod("shop", "web-0", "web"))
	}
	w.Fleet.Disconnect("lost")
	c := &fleetOfClusters{served: map[vedette.AccountName][]string{
		"dev": {"/v1/pods/Pod,po,+all", "rbac.authorization.k8s.io/v1/roles/Role", "a.example.com/v1/foos/Foo,fo,+all", "b.example.com/v1/foos/Foo,+all",
			"a.example.com/v1/po/Po"},
		"prod": {"/v1/pods/Pod,po,+all", "rbac.authorization.k8s.io/v1/roles/Role", "b.example.com/v2/foos/Foo,fo", "c.example.com/v1/bars/Bar,po"},
	}, objects: map[string]string{
		"dev Role.rbac.authorization.k8s.io shop/reader": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader","namespace":"shop","uid":"u-1",` +
			`"resourceVersion":"7","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"}}}`,
		"dev Pod shop/new": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new","namespace":"shop","uid":"u-2","resourceVersion":"8"}}`,
	}, status: map[vedette.AccountName]int{}}
	cfg := configOf(w)
	cfg.Dispatch = &fakeDispatcher{do: c.do}
	return serve(t, cfg), w, c
}

type servedKinds struct {
	Items []struct {
		Name, Kind, Version, RequestedVersion string
		AccountCount, Live                    int
		IsCategory                            bool
		NotLive, NotCached                    []accountNote
		Versions                              []struct {
			Version  string
			Accounts []string
		}
	}
	Accounts int
	Unknown  []accountNote
}

type accountNote struct {
	Account, Message string
	Connected        bool
}

func (s servedKinds) text() string {
	var texts []string
	for _, k := range s.Items {
		text := fmt.Sprintf("%s@%s:%d", k.Kind, k.Version, k.AccountCount)
		if k.IsCategory {
			text = "(" + text + ")"
		}
		texts = append(texts, text)
	}
	for _, u := range s.Unknown {
		texts = append(texts, u.Account+"?")
	}
	return strings.Join(texts, " ")
}

// TestNamesMeanKindsOfEachCluster checks what names mean in clusters that differ.
func TestNamesMeanKindsOfEachCluster(t *testing.T) {
	w, _, _ := newKindsWorld(t)
	for _, tt := range []struct{ scenario, query, want string }{
		{"a kind of Kubernetes that agents report", "name=PO", "Pod@v1:3"},
		{"a kind of Kubernetes that no agent reports", "name=roles", "Role.rbac.authorization.k8s.io@v1:2 lost?"},
		{"its singular, with its group", "name=role.rbac.authorization.k8s.io&account=dev", "Role.rbac.authorization.k8s.io@v1:1"},
		{"another kind in each cluster", "name=foos", "Foo.a.example.com@v1:1 Foo.b.example.com@v2:1 lost?"},
		{"a short name that belongs to another kind in each cluster", "name=fo", "Foo.a.example.com@v1:1 Foo.b.example.com@v2:1 lost?"},
		{"with the group", "name=Foo.b.example.com", "Foo.b.example.com@v1:2 lost?"},
		{"with the version, which one cluster serves", "name=foos.v2.b.example.com", "Foo.b.example.com@v2:1 lost?"},
		{"a category", "name=all&account=dev", "(Pod@v1:1) (Foo.a.example.com@v1:1) (Foo.b.example.com@v1:1)"},
		{"a category that clusters fill differently", "name=ALL", "(Pod@v1:2) (Foo.a.example.com@v1:1) (Foo.b.example.com@v1:1) lost?"},
		{"a kind that shadows a short name", "name=po.a.example.com&account=dev", "Po.a.example.com@v1:1"},
		{"a short name that another kind has too", "name=po.c.example.com&account=prod", "Bar.c.example.com@v1:1"},
		{"several", "name=pods,foos&account=prod", "Pod@v1:1 Foo.b.example.com@v2:1"},
		{"all kinds", "account=prod", "Pod@v1:1 Foo.b.example.com@v2:1 Bar.c.example.com@v1:1 Role.rbac.authorization.k8s.io@v1:1"},
		{"all kinds of all clusters", "", "Pod@v1:2 Foo.a.example.com@v1:1 Po.a.example.com@v1:1 Foo.b.example.com@v1:2 Bar.c.example.com@v1:1 " +
			"Role.rbac.authorization.k8s.io@v1:2 lost?"},
	} {
		if got := getJSON[servedKinds](w, "/served-kinds?"+tt.query); got.text() != tt.want {
			t.Errorf("%s: got %q, want %q", tt.scenario, got.text(), tt.want)
		}
	}
	pods := getJSON[servedKinds](w, "/served-kinds?name=pods").Items[0]
	if pods.Live != 2 || len(pods.NotLive) != 1 || pods.NotLive[0].Account != "lost" || pods.NotLive[0].Connected || len(pods.NotCached) != 0 {
		t.Errorf("pods: got %+v, want two live, and lost not", pods)
	}
	for _, tt := range []struct {
		query, kind, want string
		status            int
	}{
		{"name=fooz&account=dev", "unknown_kind", "did you mean foos", 400},
		{"name=role.rbac.authorization.k8s.iO2&account=dev", "unknown_kind", "did you mean roles.rbac.authorization.k8s.io", 400},
		{"name=fooz", "unavailable", "(it is not known of lost: no agent is connected for this account): did you mean foos", 503},
		{"name=f%C3%B6%C3%B6s&account=dev", "unknown_kind", "no cluster serves a kind or a category", 400},
		{"name=" + strings.Repeat("x", 600), "invalid", "no name has more than 512", 400},
	} {
		response, body := w.get("/served-kinds?" + tt.query)
		if response.StatusCode != tt.status || !strings.Contains(string(body), `"`+tt.kind+`"`) || !strings.Contains(string(body), tt.want) {
			t.Errorf("%.80s: got %d %s, want %d %s with %q", tt.query, response.StatusCode, body, tt.status, tt.kind, tt.want)
		}
	}
}

// TestVersionsBeforeGroups checks that KIND.VERSION.GROUP is what kubectl takes it for: a version if the cluster serves it, also if the
// agent reports only a kind of the group VERSION.GROUP. Of a cluster that does not answer, it is not known.
func TestVersionsBeforeGroups(t *testing.T) {
	w := readtest.New(t)
	inVersion := vedette.Kind{Group: "v1.example.com", Name: "Foo"}
	for _, account := range []vedette.AccountName{"both", "gone", "only", "silent"} {
		w.Account(account, "pods", vedette.Resource{Kind: inVersion, Version: "v2", Plural: "foos", Singular: "foo", ShortNames: []string{"fo"}, Namespaced: true})
	}
	w.Fleet.Disconnect("gone")
	c := &fleetOfClusters{served: map[vedette.AccountName][]string{
		"both": {"/v1/pods/Pod,po", "example.com/v1/foos/Foo,fo", "v1.example.com/v2/foos/Foo,fo"},
		"only": {"/v1/pods/Pod,po", "v1.example.com/v2/foos/Foo,fo"},
	}, status: map[vedette.AccountName]int{}}
	cfg := configOf(w)
	cfg.Dispatch = &fakeDispatcher{do: c.do}
	s := serve(t, cfg)
	for _, tt := range []struct{ query, want string }{
		{"name=foos.v1.example.com&account=both", "Foo.example.com@v1:1"},
		{"name=Foo.v1.example.com&account=both", "Foo.example.com@v1:1"},
		{"name=fo.v1.example.com&account=both", "Foo.example.com@v1:1"},
		{"name=foos.v2.v1.example.com&account=both", "Foo.v1.example.com@v2:1"},
		{"name=foos.v1.example.com&account=only", "Foo.v1.example.com@v2:1"},
		{"name=foos.v1.example.com", "Foo.example.com@v1:1 Foo.v1.example.com@v2:1 gone? silent?"},
		{"name=foos.v2.v1.example.com&account=gone", "Foo.v1.example.com@v2:1"},
	} {
		if got := getJSON[servedKinds](s, "/served-kinds?"+tt.query); got.text() != tt.want {
			t.Errorf("%s: got %q, want %q", tt.query, got.text(), tt.want)
		}
	}
	for _, account := range []string{"gone", "silent"} {
		response, body := s.get("/served-kinds?name=foos.v1.example.com&account=" + account)
		if want := "it is not known of " + account; response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %d %s, want 503 with %q", account, response.StatusCode, body, want)
		}
	}
}

// TestNewKindIsFound checks that a kind that was missing a moment ago is asked for anew, and that a cluster that fails counts as
// unknown and not as a cluster without the kind.
func TestNewKindIsFound(t *testing.T) {
	_, fixture, c := newKindsWorld(t)
	cfg := configOf(fixture)
	cfg.Dispatch = &fakeDispatcher{do: c.do}
	w := serve(t, cfg)
	if response, body := w.get("/served-kinds?name=news&account=dev"); response.StatusCode != http.StatusBadRequest {
		t.Fatalf("got %d %s", response.StatusCode, body)
	}
	c.set("prod")
	c.set("dev", "/v1/pods/Pod", "a.example.com/v1/news/News")
	awaitTrue(t, func() bool {
		response, _ := w.get("/served-kinds?name=news&account=dev")
		return response.StatusCode == http.StatusOK
	})
}

// TestMeaningsAreNotMixed checks that a name that clusters understand differently selects no objects.
func TestMeaningsAreNotMixed(t *testing.T) {
	w, _, _ := newKindsWorld(t)
	response, body := w.get("/objects?kind=foos&account=dev,prod")
	if want := `means Foo.a.example.com in the cluster of dev and Foo.b.example.com in that of prod`; response.StatusCode != 400 || !strings.Contains(string(body), want) {
		t.Errorf("got %d %s, want %q", response.StatusCode, body, want)
	}
	if got := getJSON[objectList](w, "/objects?kind=all&account=dev"); got.names() != "dev/Pod/shop/web-0" {
		t.Errorf("a category: got %s", got.names())
	}
	response, body = w.get("/objects?kind=roles&name=reader&account=dev")
	if response.StatusCode != 409 || !strings.Contains(string(body), `"not_cached"`) {
		t.Errorf("a kind that no agent reports: got %d %s, want 409 not_cached", response.StatusCode, body)
	}
}

// TestOnlyTheClusterKnows checks that an object is missing only if its cluster or a live feed says so.
func TestOnlyTheClusterKnows(t *testing.T) {
	w, fixture, c := newKindsWorld(t)
	syncing := func(account vedette.AccountName) {
		fixture.SetFeedState(account, vedette.Kind{Name: "Pod"}, vedette.FeedSyncing, "")
	}
	get := func(path string) (int, string) {
		response, body := w.get("/objects/" + path)
		return response.StatusCode, string(body)
	}
	for _, tt := range []struct {
		scenario, path string
		prepare        func()
		status         int
		want           string
		asked          bool
	}{
		{"a live feed has it", "dev/pods/shop/web-0", nil, 200, `"name":"web-0"`, false},
		{"a live feed does not have it", "dev/pods/shop/new", nil, 404, "has no Pod shop/new", false},
		{"no agent reports the kind, and the cluster has it", "dev/roles/shop/reader", nil, 200, `"uid":"u-1","resourceVersion":"7","created":"2026-01-01T00:00:00.000Z"`, true},
		{"no agent reports the kind, and the cluster does not have it", "dev/role/shop/none", nil, 404, "the cluster of dev has no Role.rbac.authorization.k8s.io shop/none", true},
		{"the agent is gone, and the store has it", "lost/pods/shop/web-0", nil, 200, `"stale":true`, false},
		{"the agent is gone, and the store does not have it", "lost/pods/shop/new", nil, 503, "it is not known whether Pod shop/new exists in lost", false},
		{"the feed is not live, and the cluster has it", "dev/pods/shop/new", func() { syncing("dev") }, 200, `"name":"new"`, true},
		{"the feed is not live, and the store has it", "dev/pods/shop/web-0", nil, 200, `"stale":true`, false},
		{"the feed is not live, and the cluster does not answer", "prod/pods/shop/new", func() { syncing("prod"); c.status["prod"] = 503 }, 503,
			"because Pod is syncing, and its cluster cannot be asked: the API server is down", true},
	} {
		if tt.prepare != nil {
			tt.prepare()
		}
		before := len(c.gets())
		awaitTrue(t, func() bool { // the states of feeds are up to a second old
			status, _ := get(tt.path)
			return status == tt.status
		})
		status, body := get(tt.path)
		if status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: got %d %s, want %d with %q", tt.scenario, status, body, tt.status, tt.want)
		}
		if asked := len(c.gets()) > before; asked != tt.asked {
			t.Errorf("%s: the cluster was asked: %v, want %v", tt.scenario, asked, tt.asked)
		}
	}
}

func (c *fleetOfClusters) gets() []vedette.Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.asked), func(op vedette.Operation) bool { return op.Args.Verb() != vedette.VerbGet })
}

// awaitTrue polls a condition.
func awaitTrue(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal("timeout")
		case <-tick.C:
		}
	}
}

// TestFeedsAskNoCluster checks that the list of feeds, which is open to everyone, neither asks a cluster what a name means nor says
// what it serves.
func TestFeedsAskNoCluster(t *testing.T) {
	_, fixture, c := newKindsWorld(t)
	cfg := configOf(fixture)
	cfg.Dispatch = &fakeDispatcher{do: c.do}
	cfg.Authorizer = &grants{byUser: map[string][]vedette.AccountName{"ann": {"dev"}}}
	w := serve(t, cfg)
	for _, user := range []string{"ann", ""} {
		response, body := w.get("/feeds?kind=barz", "X-SPINNAKER-USER", user)
		if want := `no agent reports a kind \"barz\"`; response.StatusCode != 400 || !strings.Contains(string(body), want) || strings.Contains(string(body), "bars") {
			t.Errorf("%q: got %d %s, want %s", user, response.StatusCode, body, want)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range c.asked {
		t.Errorf("%s was asked: %s", op.Account, op.Args.Verb())
	}
}

// TestObjectsThatAgentsLeaveOut checks that the cluster is asked for an object that its agent never reports, although its feed is live.
func TestObjectsThatAgentsLeaveOut(t *testing.T) {
	w := readtest.New(t)
	w.Register(vedette.Account{Name: "managed", Properties: vedette.Properties{OnlySpinnakerManaged: true}}, "pods", "namespaces")
	w.Register(vedette.Account{Name: "omits", Properties: vedette.Properties{OmitNamespaces: []string{"hidden"}}}, "pods", "namespaces", "nodes")
	w.Account("large", "pods")
	w.SetFeedState("large", vedette.Kind{Name: "Pod"}, vedette.FeedLive, "1 object is left out: shop/p (too large)")
	c := &fleetOfClusters{status: map[vedette.AccountName]int{}}
	cfg := configOf(w)
	cfg.Dispatch = &fakeDispatcher{do: c.do}
	s := serve(t, cfg)
	for _, tt := range []struct {
		path  string
		asked bool
	}{{"managed/pods/shop/p", true}, {"managed/namespaces/_/n", false}, {"omits/pods/hidden/p", true}, {"omits/pods/shop/p", false},
		{"omits/namespaces/_/hidden", true}, {"omits/nodes/_/n", false}, {"large/pods/shop/p", true}} {
		before := len(c.gets())
		response, body := s.get("/objects/" + tt.path)
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d %s", tt.path, response.StatusCode, body)
		}
		if asked := len(c.gets()) > before; asked != tt.asked {
			t.Errorf("%s: the cluster was asked: %v, want %v", tt.path, asked, tt.asked)
		}
	}
	for query, live := range map[string]int{"account=managed": 0, "account=omits": 0, "account=omits&namespace=shop": 1, "account=omits&namespace=hidden": 0, "account=large": 0} {
		if got := getJSON[servedKinds](s, "/served-kinds?name=pods&"+query); got.Items[0].Live != live {
			t.Errorf("%s: got %+v, want %d live", query, got, live)
		}
	}
}

// TestServedKindsPayForTheirMemory checks that a list of all kinds, of which clusters may serve very many, waits for no memory and takes none
// that is not free.
func TestServedKindsPayForTheirMemory(t *testing.T) {
	_, fixture, c := newKindsWorld(t)
	cfg := configOf(fixture)
	cfg.Dispatch = &fakeDispatcher{do: c.do}
	limiter := readlimit.New(readlimit.Config{Bytes: 8 << 20})
	handler := limiter.HoldAnswers(api.New(cfg))
	status := func() int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/vedette/v1/served-kinds?account=dev", nil))
		return answer.Code
	}
	if got := status(); got != http.StatusOK {
		t.Errorf("got %d", got)
	}
	_, release := readtest.Exhaust(limiter)
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("without memory: got %d, want 503", got)
	}
	release()
	if got := status(); got != http.StatusOK {
		t.Errorf("with memory again: got %d", got)
	}
}

// TestNamesAskNoCluster completes names of kinds that agents report, and of others. No cluster is asked, because its answer would be
// late.
func TestNamesAskNoCluster(t *testing.T) {
	w, _, c := newKindsWorld(t)
	if got := awaitNames(w, "of=objects&kind=po", func(got nameList) bool { return got.Complete }); len(got.Items) != 1 || got.Items[0] != "web-0" {
		t.Errorf("got %+v", got)
	}
	if response, body := w.get("/names?of=objects&kind=foos"); response.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "no agent reports a kind") {
		t.Errorf("got %d %s", response.StatusCode, body)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) != 0 {
		t.Errorf("clusters were asked: %+v", c.asked)
	}
}
