package clouddriver_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/tables"
	"github.com/vedette-io/vedette/server/tables/tablestest"
)

var (
	viewSeeds = flag.Int("view-seeds", 3, "number of random histories after which views are compared")
	viewSteps = flag.Int("view-steps", 60, "number of changes in each of these histories")
)

// TestCachedViewsEqualFreshOnes changes a small fleet and what callers may read of it at random. After
// each change, a handler that was asked all the time must answer like one that has just started,
// while other callers make it read again.
func TestCachedViewsEqualFreshOnes(t *testing.T) {
	for seed := range *viewSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newRandomFleet(t, uint64(seed)) //nolint:gosec // small
			cfg := clouddriver.Config{Store: f.store, Projects: fakeProjects{}, Authorizer: &f.denials}
			kept := clouddriver.New(cfg)
			stop := keepAsking(kept)
			defer stop()
			for step := range *viewSteps {
				what := f.change()
				fresh := clouddriver.New(cfg)
				for _, path := range randomViewPaths {
					got, want := answerOf(kept, path), answerOf(fresh, path)
					if got != want {
						t.Fatalf("step %d, %s: %s: got\n%s\nwant\n%s", step, what, path, got, want)
					}
					f.denials.checkAnswer(t, path, got)
				}
				f.compareInventory(what)
			}
		})
	}
}

var randomViewPaths = []string{"/applications", "/applications/shop", "/applications/shop/clusters", "/applications/shop/clusters/prod",
	"/applications/shop/clusters/dev/deployment%20web?expand=true", "/applications/shop/serverGroups", "/applications/shop/serverGroups?expand=true",
	"/applications/cart/serverGroups", "/applications/cart/clusters", "/applications/cart/loadBalancers", "/applications/shop/loadBalancers",
	"/applications/shop/serverGroupManagers", "/applications/cart/serverGroupManagers", "/applications/shop/rawResources", "/applications/cart/rawResources",
	"/serverGroups?applications=shop,cart", "/serverGroups/prod/a/replicaSet%20web", "/kubernetes/loadBalancers/prod/a/service%20web",
	"/securityGroups", "/search?q=web&type=", "/instances/prod/a/pod%20web", "/projects/store/clusters", "/credentials"}

// keepAsking sends requests until the returned function is called.
func keepAsking(handler http.Handler) (stop func()) {
	var done atomic.Bool
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			for n := i; !done.Load(); n++ {
				answerOf(handler, randomViewPaths[n%len(randomViewPaths)])
			}
		})
	}
	return func() { done.Store(true); group.Wait() }
}

// answerOf returns the status, the ETag and the body of an answer.
func answerOf(handler http.Handler, path string) string {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	body := recorder.Body.String()
	if i := strings.Index(body, `"timestamp"`); i >= 0 { // of an error
		body = body[:i]
	}
	return fmt.Sprint(recorder.Code, " ", recorder.Header().Get("ETag"), " ", body)
}

// randomFleet is a store that changes at random.
type randomFleet struct {
	t        *testing.T
	random   *rand.Rand
	store    *store.Store
	terms    map[vedette.AccountName]vedette.Term
	clusters map[vedette.AccountName]int // how often the account was registered with another cluster
	feeds    []commit.DeclaredFeed
	version  int
	denials  denials
}

// denials are what nobody may read now.
type denials struct {
	mu    sync.Mutex
	names map[string]bool // "account prod" or "application shop"
}

func (d *denials) check(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] {
		return vedette.Errorf(vedette.Denied, "Access is denied")
	}
	return nil
}

func (d *denials) CheckAccount(_ context.Context, _ authorize.Caller, account vedette.AccountName, _ authorize.Access) error {
	return d.check("account " + string(account))
}

func (d *denials) CheckApplication(_ context.Context, _ authorize.Caller, application string, _ authorize.Access) error {
	return d.check("application " + application)
}

func (d *denials) Readable(context.Context, authorize.Caller) (func(vedette.AccountName) bool, error) {
	return func(account vedette.AccountName) bool { return d.check("account "+string(account)) == nil }, nil
}

func (d *denials) ReadableApplications(context.Context, authorize.Caller) (func(string) bool, error) {
	return func(application string) bool { return d.check("application "+application) == nil }, nil
}

// checkAnswer expects nothing of what may not be read. Applications name the accounts of their
// clusters, as in Clouddriver.
func (d *denials) checkAnswer(t *testing.T, path, answer string) {
	t.Helper()
	for _, account := range randomAccounts {
		if d.check("account "+string(account)) != nil && strings.Contains(answer, fmt.Sprintf(`"account":%q`, account)) && !strings.HasPrefix(path, "/projects/") {
			t.Errorf("%s: got %s, want nothing of account %s", path, answer, account)
		}
	}
	for _, application := range []string{"shop", "cart"} {
		isOf := strings.HasPrefix(path, "/applications/"+application)
		if d.check("application "+application) != nil && isOf && !strings.HasPrefix(answer, "403 ") {
			t.Errorf("%s: got %s, want 403", path, answer)
		}
	}
}

var randomAccounts = []vedette.AccountName{"prod", "dev"}

func newRandomFleet(t *testing.T, seed uint64) *randomFleet {
	f := &randomFleet{t: t, random: rand.New(rand.NewPCG(seed, 1)), store: viewWorld(t).Store, //nolint:gosec // not secret
		terms: map[vedette.AccountName]vedette.Term{}, clusters: map[vedette.AccountName]int{}}
	for _, kind := range append(viewKinds(), "configmaps") {
		r, err := tables.FindResource(nil, kind.(string))
		f.check(err)
		f.feeds = append(f.feeds, commit.DeclaredFeed{Feed: vedette.Feed{Kind: r.Kind}, Resource: r})
	}
	for _, account := range randomAccounts {
		f.check(f.store.RemoveAccount(t.Context(), account))
		f.register(account)
	}
	return f
}

func (f *randomFleet) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// oneOf returns one of the texts.
func (f *randomFleet) oneOf(texts ...string) string { return texts[f.random.IntN(len(texts))] }

// change makes one change, and says which.
func (f *randomFleet) change() string {
	account := randomAccounts[f.random.IntN(len(randomAccounts))]
	switch n := f.random.IntN(100); {
	case n < 10:
		return f.deny()
	case n < 70:
		return f.commit(account)
	case n < 80:
		return f.writeThrough(account)
	case n < 84:
		return f.register(account)
	case n < 88:
		return f.reregister(account)
	case n < 92:
		return f.retire(account)
	case n < 96:
		return f.declare(account)
	default:
		return f.drop(account)
	}
}

// deny changes what may be read, so that each name is denied a quarter of the time.
func (f *randomFleet) deny() string {
	f.denials.mu.Lock()
	defer f.denials.mu.Unlock()
	f.denials.names = map[string]bool{}
	for _, name := range []string{"account prod", "account dev", "application shop", "application cart"} {
		f.denials.names[name] = f.random.IntN(4) == 0
	}
	return fmt.Sprint("deny ", f.denials.names)
}

// register makes another agent the account's, perhaps with other properties.
func (f *randomFleet) register(account vedette.AccountName) string {
	a := vedette.Account{Name: account, Cluster: vedette.Cluster{UID: fmt.Sprint(account, f.clusters[account])},
		Properties: vedette.Properties{OnlySpinnakerManaged: f.random.IntN(3) == 0, CacheAllRelationships: f.random.IntN(3) == 0}}
	if f.random.IntN(3) == 0 {
		a.Properties.OmitKinds = []string{f.oneOf("service", "replicaSet", "configMap")}
	}
	_, err := f.store.Register(f.t.Context(), a)
	f.check(err)
	f.terms[account], err = f.store.Acquire(f.t.Context(), account, registry.CacherClaim{Agent: "agent", Server: "server-1", Account: &a})
	f.check(err)
	_, err = f.store.Declare(f.t.Context(), account, f.terms[account], f.feeds, nil)
	f.check(err)
	return fmt.Sprintf("register %s with %+v", account, a.Properties)
}

// reregister removes an account, and registers another cluster under its name.
func (f *randomFleet) reregister(account vedette.AccountName) string {
	f.check(f.store.RemoveAccount(f.t.Context(), account))
	f.clusters[account]++
	return "remove the account, and " + f.register(account)
}

// retire hides an account, and perhaps shows it again.
func (f *randomFleet) retire(account vedette.AccountName) string {
	f.check(f.store.Release(f.t.Context(), account, f.terms[account], "server-1"))
	retired, err := f.store.RetireOrphan(f.t.Context(), account, f.terms[account])
	f.check(err)
	if !retired {
		f.t.Fatalf("account %s was not retired", account)
	}
	for _, path := range []string{"/applications/shop/clusters", "/applications/shop/serverGroups", "/search?q=web&type="} {
		answer := answerOf(clouddriver.New(clouddriver.Config{Store: f.store}), path)
		if strings.Contains(answer, fmt.Sprintf("%q", account)) {
			f.t.Errorf("%s: got %s, want nothing of the retired account %s", path, answer, account)
		}
	}
	return "retire the account, and " + f.register(account)
}

// declare withdraws a kind with all of its objects, and declares it again.
func (f *randomFleet) declare(account vedette.AccountName) string {
	at := f.random.IntN(len(f.feeds))
	others := append(append([]commit.DeclaredFeed{}, f.feeds[:at]...), f.feeds[at+1:]...)
	for _, feeds := range [][]commit.DeclaredFeed{others, f.feeds} {
		_, err := f.store.Declare(f.t.Context(), account, f.terms[account], feeds, nil)
		f.check(err)
	}
	return fmt.Sprintf("withdraw %s of %s", f.feeds[at].Feed, account)
}

// drop removes what a snapshot did not find: about half of the objects of a kind.
func (f *randomFleet) drop(account vedette.AccountName) string {
	feed := f.feeds[f.random.IntN(len(f.feeds))].Feed
	page, err := f.store.Objects(f.t.Context(), read.Query{Accounts: []vedette.AccountName{account}, Kinds: []vedette.Kind{feed.Kind}, Limit: 100})
	f.check(err)
	var digests []uint64
	for _, o := range page.Items {
		if f.random.IntN(2) == 0 {
			digests = append(digests, vedette.Digest(o.Namespace, o.Name, o.UID, o.ResourceVersion))
		}
	}
	f.write(commit.Batch{Account: account, Drops: []commit.Drop{{Feed: feed, Digests: digests}}})
	return fmt.Sprintf("drop %d of %d objects of %s of %s", len(digests), len(page.Items), feed, account)
}

// commit stores and deletes a few objects.
func (f *randomFleet) commit(account vedette.AccountName) string {
	b, seen := commit.Batch{Account: account}, map[vedette.Key]bool{}
	for range 1 + f.random.IntN(4) {
		o := f.object()
		switch {
		case seen[o.Key]:
		case f.random.IntN(4) == 0:
			b.Deletes = append(b.Deletes, commit.Deletion{Key: o.Key})
		default:
			b.Upserts = append(b.Upserts, o)
		}
		seen[o.Key] = true
	}
	f.write(b)
	return fmt.Sprintf("commit to %s: put %v, delete %v", account, describeObjects(b.Upserts), b.Deletes)
}

func (f *randomFleet) write(b commit.Batch) {
	b.Term = f.terms[b.Account]
	_, err := f.store.Commit(f.t.Context(), b)
	f.check(err)
}

// writeThrough stores or removes an object like an operation does.
func (f *randomFleet) writeThrough(account vedette.AccountName) string {
	o := f.object()
	if f.random.IntN(3) > 0 {
		_, _, err := f.store.WriteThrough(f.t.Context(), account, f.terms[account], o, nil)
		f.check(err)
		return "write through to " + string(account) + ": " + describeObjects([]vedette.Object{o})[0]
	}
	uid, _, err := f.store.UID(f.t.Context(), account, o.Key)
	f.check(err)
	_, _, err = f.store.RemoveThrough(f.t.Context(), account, f.terms[account], o.Key, uid, nil)
	f.check(err)
	return "remove through of " + string(account) + ": " + o.Key.String()
}

func describeObjects(objects []vedette.Object) []string {
	var texts []string
	for i := range objects {
		texts = append(texts, string(objects[i].Body))
	}
	return texts
}

// randomUIDs are few, so that objects find owners, also wrong ones.
var randomUIDs = []string{"a0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-000000000002", "a0000000-0000-4000-8000-000000000003"}

// object returns an object of one of few names, with relations to others.
func (f *randomFleet) object() vedette.Object {
	f.version++
	annotations := map[string]string{}
	if app := f.oneOf("shop", "cart", ""); app != "" {
		annotations["moniker.spinnaker.io/application"] = app
	}
	if f.random.IntN(6) == 0 {
		annotations["caching.spinnaker.io/ignore"] = "true"
	}
	if f.random.IntN(4) == 0 {
		annotations["moniker.spinnaker.io/cluster"] = f.oneOf("deployment web", "other")
	}
	if f.random.IntN(4) == 0 {
		annotations["traffic.spinnaker.io/load-balancers"] = f.oneOf(`["service web"]`, `["service none"]`, `broken`)
	}
	labels := map[string]string{"app": f.oneOf("x", "y")}
	metadata := map[string]any{"name": f.oneOf("web", "api", "shop-web-v001"), "namespace": f.oneOf("a", "b"), "annotations": annotations, "labels": labels,
		"uid": f.oneOf(randomUIDs...), "resourceVersion": fmt.Sprint(f.version)}
	if f.random.IntN(3) > 0 {
		kind := f.oneOf("ReplicaSet", "Deployment", "StatefulSet")
		metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": f.oneOf(randomUIDs...)}}
	}
	kind := f.oneOf("v1 Pod", "v1 Pod", "apps/v1 ReplicaSet", "apps/v1 ReplicaSet", "apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet",
		"batch/v1 Job", "batch/v1 CronJob", "v1 Service", "v1 Service", "networking.k8s.io/v1 Ingress", "networking.k8s.io/v1 NetworkPolicy", "v1 ConfigMap")
	version, kind, _ := strings.Cut(kind, " ")
	text, err := json.Marshal(map[string]any{"apiVersion": version, "kind": kind, "metadata": metadata, "spec": f.spec(kind, labels),
		"status": map[string]any{"phase": f.oneOf("Running", "Pending")}})
	f.check(err)
	return tablestest.Object(f.t, string(text))
}

func (f *randomFleet) spec(kind string, labels map[string]string) map[string]any {
	switch kind {
	case "Pod":
		return map[string]any{"containers": []any{}}
	case "Service":
		return map[string]any{"selector": map[string]string{"app": f.oneOf("x", "y")}}
	}
	return map[string]any{"serviceName": f.oneOf("web", "api"), "replicas": f.random.IntN(3),
		"template": map[string]any{"metadata": map[string]any{"labels": labels}}}
}

// compareInventory compares the clusters that are counted with those of the stored objects.
func (f *randomFleet) compareInventory(what string) {
	f.t.Helper()
	handler := clouddriver.New(clouddriver.Config{Store: f.store})
	for _, app := range []string{"shop", "cart"} {
		want := map[string]map[string]bool{}
		for _, path := range []string{"serverGroups", "serverGroupManagers"} {
			var list []struct {
				Account string
				Moniker struct{ Cluster string }
			}
			f.decode(handler, "/applications/"+app+"/"+path, &list)
			for _, o := range list {
				if want[o.Account] == nil {
					want[o.Account] = map[string]bool{}
				}
				want[o.Account][o.Moniker.Cluster] = true
			}
		}
		var clusters map[string][]string
		f.decode(handler, "/applications/"+app+"/clusters", &clusters)
		got := map[string]map[string]bool{}
		for account, names := range clusters {
			got[account] = map[string]bool{}
			for _, name := range names {
				got[account][name] = true
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			f.t.Fatalf("%s: application %s: got clusters %v, want %v", what, app, got, want)
		}
	}
}

func (f *randomFleet) decode(handler http.Handler, path string, into any) {
	f.t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	f.check(json.Unmarshal(recorder.Body.Bytes(), into))
}
