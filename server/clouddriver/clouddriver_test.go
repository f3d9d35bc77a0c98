package clouddriver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

var crontab = vedette.Resource{Kind: vedette.Kind{Group: "stable.example.com", Name: "CronTab"}, Version: "v1", Plural: "crontabs", Namespaced: true}

func prodKinds() []any {
	return []any{"pods", "deployments", "replicasets", "daemonsets", "statefulsets", "jobs", "services", "nodes", "hpa", "configmaps", crontab}
}

func serve(t *testing.T, cfg clouddriver.Config) string {
	server := httptest.NewServer(clouddriver.New(cfg))
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	// Redirects are not followed, because Orca's client would follow them to another path.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, body
}

// TestManifestsAnswerAsRecorded stores each testdata/x.input.json and compares the response with
// x.output.json.
func TestManifestsAnswerAsRecorded(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.input.json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("got no test cases, error %v", err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".input.json"), func(t *testing.T) {
			manifest, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			w := readtest.New(t)
			w.Account("prod", prodKinds()...)
			o := w.Put("prod", string(manifest))[0]
			url := serve(t, clouddriver.Config{Store: w.Store}) + "/manifests/prod/" + o.Namespace + "/" + o.Kind.Name
			if !vedette.IsNativeGroup(o.Kind.Group) {
				url += "." + o.Kind.Group
			}
			response, body := get(t, url+"%20"+o.Name)
			if response.StatusCode != http.StatusOK {
				t.Fatalf("got %d %s, want %d", response.StatusCode, body, http.StatusOK)
			}
			golden.Compare(t, strings.Replace(input, ".input.", ".output.", 1), indent(t, body))
		})
	}
}

func indent(t *testing.T, body []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		t.Fatalf("invalid JSON: %v: %s", err, body)
	}
	return b.String()
}

// TestManifestIsFoundByEachName requests the same objects by each form of their name that callers use.
func TestManifestIsFoundByEachName(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", prodKinds()...)
	w.Put("prod", readtest.Deployment("shop", "web.v1", 3), readtest.Node("node-1"),
		`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"nightly","namespace":"shop"}}`)
	server := serve(t, clouddriver.Config{Store: w.Store})
	for _, tt := range []struct{ scenario, path, name, location string }{
		{"as Clouddriver writes the kind", "/manifests/prod/shop/deployment%20web.v1", "deployment web.v1", "shop"},
		{"as Kubernetes writes it", "/manifests/prod/shop/Deployment%20web.v1?includeEvents=true", "deployment web.v1", "shop"},
		{"in any case", "/manifests/prod/shop/DEPLOYMENT%20web.v1", "deployment web.v1", "shop"},
		{"by a short name", "/manifests/prod/shop/deploy%20web.v1", "deployment web.v1", "shop"},
		{"with its group", "/manifests/prod/shop/Deployment.apps%20web.v1", "deployment web.v1", "shop"},
		{"with a plus, which is not a space in a path", "/manifests/prod/shop/deployment+web.v1", "", ""},
		{"a custom kind", "/manifests/prod/shop/crontab.stable.example.com%20nightly", "CronTab.stable.example.com nightly", "shop"},
		{"cluster-scoped with an underscore", "/manifests/prod/_/node%20node-1", "Node node-1", ""},
		{"cluster-scoped with an empty segment", "/manifests/prod//node%20node-1", "Node node-1", ""},
		{"cluster-scoped without the segment", "/manifests/prod/node%20node-1", "Node node-1", ""},
		{"cluster-scoped with a namespace, which kubectl accepts", "/manifests/prod/shop/node%20node-1", "Node node-1", ""},
	} {
		t.Run(tt.scenario, func(t *testing.T) {
			response, body := get(t, server+tt.path)
			var got struct{ Account, Name, Location string }
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatalf("invalid JSON: %v: %s", err, body)
			}
			if tt.name == "" {
				if response.StatusCode != http.StatusNotFound {
					t.Errorf("got %d %s, want 404", response.StatusCode, body)
				}
				return
			}
			if response.StatusCode != http.StatusOK || got.Name != tt.name || got.Location != tt.location || got.Account != "prod" {
				t.Errorf("got %d %+v, want %+v", response.StatusCode, got, tt)
			}
		})
	}
}

// TestNamespaceOfTheContext checks that an empty location means the namespace of the account's
// kubeconfig context, in the store and in the cluster.
func TestNamespaceOfTheContext(t *testing.T) {
	w := readtest.New(t)
	w.Register(vedette.Account{Name: "prod", Properties: vedette.Properties{DefaultNamespace: "shop"}}, "replicasets", "nodes")
	w.Account("plain", "replicasets")
	for _, account := range []vedette.AccountName{"prod", "plain"} {
		w.Put(account, replicaSet("web-v001", "2026-11-20T12:00:00Z", "replicaSet web", 1))
	}
	w.Put("prod", readtest.Node("node-1"))
	cluster := &fakeCluster{answers: map[string]vedette.Outcome{
		"get configMap shop/settings-v001": objectsOutcome(settings), "list configMap shop": objectsOutcome(settings)}}
	server := serve(t, clouddriver.Config{Store: w.Store, Dispatch: cluster})
	for path, want := range map[string]int{
		"/manifests/prod/_/replicaSet%20web-v001": 200, "/manifests/prod//replicaSet%20web-v001": 200, "/manifests/prod/replicaSet%20web-v001": 200,
		"/manifests/prod/_/node%20node-1": 200, "/manifests/prod/default/replicaSet%20web-v001": 404,
		"/manifests/plain/_/replicaSet%20web-v001":                                      404,
		"/manifests/prod/_/configMap%20settings-v001":                                   200,
		"/manifests/prod/_/replicaSet/cluster/web/replicaSet%20web/dynamic/newest":      200,
		"/manifests/plain/_/replicaSet/cluster/web/replicaSet%20web/dynamic/newest":     404,
		"/manifests/prod/_/configMap/cluster/web/configMap%20settings/dynamic/smallest": 200,
	} {
		if response, body := get(t, server+path); response.StatusCode != want {
			t.Errorf("%s: got %d %s, want %d", path, response.StatusCode, body, want)
		}
	}
}

func TestErrorsHaveClouddriversWords(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", prodKinds()...)
	w.Account("new")
	w.Account("away", "pods")
	w.Put("away", readtest.Pod("shop", "web-0", "web"))
	w.Fleet.Disconnect("away")
	w.Put("prod", `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"old","namespace":"shop"}}`)
	w.SetFeedState("prod", vedette.Kind{Group: "batch", Name: "Job"}, vedette.FeedSyncing, "")
	w.SetFeedState("prod", vedette.Kind{Name: "Service"}, vedette.FeedDenied, "services is forbidden")
	server := serve(t, clouddriver.Config{Store: w.Store, Connected: func(a vedette.AccountName) bool { _, live := w.Fleet.Freshness(a); return live || a == "new" }})
	for _, tt := range []struct {
		name, path string
		status     int
		message    string
	}{
		{"a missing object", "/manifests/prod/shop/pod%20nope", 404, "Manifest (account: prod, location: shop, name: pod nope) not found"},
		{"an unknown account", "/manifests/test/shop/pod%20nope", 404, "Manifest (account: test, location: shop, name: pod nope) not found"},
		{"an unknown kind", "/manifests/prod/shop/zebra%20z", 500, "Failed to read manifest: (account: prod, location: shop, name: zebra z): no agent reports"},
		{"a kind that is not cached", "/manifests/prod/shop/secret%20z", 500, "Failed to read manifest: (account: prod, location: shop, name: secret z): the account's agent does not cache this kind"},
		{"a kind that RBAC denies", "/manifests/prod/shop/service%20web", 500, "services is forbidden"},
		{"an account without a connected agent", "/manifests/away/shop/pod%20nope", 503, "no agent is connected for this account"},
		{"a kind that is syncing", "/manifests/prod/shop/job%20old", 500, "the agent does not watch this kind now: syncing"},
		{"a name without a kind", "/manifests/prod/shop/nope", 404, "Manifest (account: prod, location: shop, name: nope) not found"},
		{"credentials of an unknown account", "/credentials/nope", 404, "Account does not exist (name: nope)"},
		{"credentials of an empty name", "/credentials/", 404, "Account does not exist (name: )"},
		{"an unknown path", "/nope", 404, "No handler found for GET /nope"},
		{"an account without any feed yet", "/manifests/new/shop/pod%20nope", 500, "the account's agent has not reported yet which kinds it caches"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, body := get(t, server+tt.path)
			var got struct {
				Status                               int
				Error, Message, Exception, Timestamp string
			}
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatalf("invalid JSON: %v: %s", err, body)
			}
			if response.StatusCode != tt.status || got.Status != response.StatusCode ||
				got.Error != http.StatusText(got.Status) || got.Timestamp == "" || got.Exception == "" {
				t.Errorf("got %d %+v, want %+v", response.StatusCode, got, tt)
			}
			if !strings.Contains(got.Message, tt.message) {
				t.Errorf("message: got %q, want %q", got.Message, tt.message)
			}
		})
	}
}

func TestMethodNotAllowedAndHead(t *testing.T) {
	server := serve(t, clouddriver.Config{Store: readtest.New(t).Store})
	response, err := http.Post(server+"/artifacts/credentials", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 405 || response.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got %d with Allow %q, want 405 with GET and HEAD", response.StatusCode, response.Header.Get("Allow"))
	}
	response, err = http.Head(server + "/credentials")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 200 || response.ContentLength != 3 {
		t.Errorf("HEAD: got %d with Content-Length %d, want 200 with 3", response.StatusCode, response.ContentLength)
	}
}

func TestUnchangedManifestIsNotSent(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", "pods")
	w.Put("prod", readtest.Pod("shop", "web-0", "web"))
	url := serve(t, clouddriver.Config{Store: w.Store}) + "/manifests/prod/shop/pod%20web-0"
	response, _ := get(t, url)
	tag := response.Header.Get("ETag")
	if response, body := get(t, url, "If-None-Match", tag); response.StatusCode != http.StatusNotModified || len(body) > 0 {
		t.Errorf("unchanged: got %d with %d bytes, want 304 without a body", response.StatusCode, len(body))
	}
	w.Put("prod", readtest.Pod("shop", "web-0", "shop"))
	if response, _ := get(t, url, "If-None-Match", tag); response.StatusCode != http.StatusOK {
		t.Errorf("changed: got %d, want 200", response.StatusCode)
	}
}

func TestCredentialsAreAsRecorded(t *testing.T) {
	w := readtest.New(t)
	w.Account("open", "pods")
	w.Register(vedette.Account{Name: "prod", Namespaces: []string{"default", "kube-system", "shop"}, Properties: vedette.Properties{
		Environment: "default", AccountType: "default", OmitNamespaces: []string{"kube-system"},
		Permissions:     &vedette.Permissions{Read: []string{"dev"}, Write: []string{"ops"}},
		CustomResources: []vedette.CustomResource{{KubernetesKind: "CronTab.stable.example.com", SpinnakerKind: "serverGroups"}},
	}}, "pods", crontab)
	w.Register(vedette.Account{Name: "team", Namespaces: []string{"a", "b"}, Properties: vedette.Properties{Namespaces: []string{"b"}}}, "pods",
		vedette.Resource{Kind: vedette.Kind{Group: "x.example.com", Name: "Y"}, Version: "v1", Plural: "ys"})
	server := serve(t, clouddriver.Config{Store: w.Store})
	for file, path := range map[string]string{"credentials": "/credentials", "credentials-expanded": "/credentials?expand=true", "credentials-prod": "/credentials/prod"} {
		_, body := get(t, server+path)
		golden.Compare(t, "testdata/"+file+".json", indent(t, body))
	}
}

// unavailableStore is a store whose database does not answer.
type unavailableStore struct{ *store.Store }

func (unavailableStore) Ping(context.Context) error       { return errors.New("connection refused") }
func (unavailableStore) WriteProblem() sqldb.WriteProblem { return "" }

func (unavailableStore) Accounts(context.Context) ([]registry.Account, error) {
	return nil, errors.New("secret text of a driver")
}

func (unavailableStore) AccountsNamed(context.Context, ...vedette.AccountName) ([]registry.Account, error) {
	return nil, errors.New("secret text of a driver")
}

func TestHealthFollowsTheDatabase(t *testing.T) {
	s := readtest.New(t).Store
	response, body := get(t, serve(t, clouddriver.Config{Store: s, AgentCount: func() int { return 3 }})+"/health")
	if want := `{"status":"UP","components":{"agents":{"status":"UP","details":{"connected":3}},"db":{"status":"UP"}}}` + "\n"; response.StatusCode != 200 || string(body) != want {
		t.Errorf("got %d %s, want %d and %q", response.StatusCode, body, 200, want)
	}
	response, body = get(t, serve(t, clouddriver.Config{Store: unavailableStore{s}})+"/health")
	if response.StatusCode != 503 || !bytes.Contains(body, []byte(`"status":"DOWN"`)) || bytes.Contains(body, []byte("refused")) {
		t.Errorf("got %d %s, want %d and %q", response.StatusCode, body, 503, `"status":"DOWN"`)
	}
}

// TestInternalErrorsAreLoggedNotSent checks that internal details are logged but not sent to clients.
func TestInternalErrorsAreLoggedNotSent(t *testing.T) {
	var log bytes.Buffer
	server := serve(t, clouddriver.Config{Store: unavailableStore{readtest.New(t).Store}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	response, body := get(t, server+"/credentials")
	if response.StatusCode != 500 || bytes.Contains(body, []byte("secret")) {
		t.Errorf("got %d %s, want %d", response.StatusCode, body, 500)
	}
	id := regexp.MustCompile(`for id (\w+)`).FindSubmatch(body)
	if id == nil || !strings.Contains(log.String(), "secret text of a driver") || !strings.Contains(log.String(), string(id[1])) {
		t.Errorf("got body %s and log %s, want the same id in both", body, log.String())
	}
}

// TestReadinessIsSetPerAccount checks that only accounts with checkReadiness make stages wait
// for kinds that Clouddriver calls stable.
func TestReadinessIsSetPerAccount(t *testing.T) {
	w := readtest.New(t)
	w.Account("plain", "namespaces")
	w.Register(vedette.Account{Name: "ready", Properties: vedette.Properties{CheckReadiness: true}}, "namespaces")
	server := serve(t, clouddriver.Config{Store: w.Store})
	for account, want := range map[vedette.AccountName]string{"plain": `"stable":{"state":true}`, "ready": `"stable":{"state":false,"message":"Waiting for the namespace to be active"}`} {
		w.Put(account, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
		if response, body := get(t, server+"/manifests/"+string(account)+"/_/namespace%20shop"); response.StatusCode != 200 || !bytes.Contains(body, []byte(want)) {
			t.Errorf("%s: got %d %s, want %d and %q", account, response.StatusCode, body, 200, want)
		}
	}
}
