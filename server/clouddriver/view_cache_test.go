package clouddriver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
)

// viewReads is a store that counts reads of rows.
type viewReads struct {
	*store.Store
	reads atomic.Int64
}

func (s *viewReads) ApplicationAttributes(ctx context.Context, application string, kinds []vedette.Kind) ([]read.AttributesRow, error) {
	s.reads.Add(1)
	return s.Store.ApplicationAttributes(ctx, application, kinds)
}

func (s *viewReads) OwnedAttributes(ctx context.Context, application string, owners, kinds []vedette.Kind) ([]read.AttributesRow, error) {
	s.reads.Add(1)
	return s.Store.OwnedAttributes(ctx, application, owners, kinds)
}

func (s *viewReads) NeighborAttributes(ctx context.Context, application string, of, kinds []vedette.Kind) ([]read.AttributesRow, error) {
	s.reads.Add(1)
	return s.Store.NeighborAttributes(ctx, application, of, kinds)
}

func (s *viewReads) AttributesOwnedBy(ctx context.Context, owners []read.OwnerRef, kinds []vedette.Kind) ([]read.AttributesRow, error) {
	s.reads.Add(1)
	return s.Store.AttributesOwnedBy(ctx, owners, kinds)
}

func (s *viewReads) KindAttributes(ctx context.Context, q read.AttributesQuery) ([]read.AttributesRow, error) {
	s.reads.Add(1)
	return s.Store.KindAttributes(ctx, q)
}

func (s *viewReads) Accounts(ctx context.Context) ([]registry.Account, error) {
	s.reads.Add(1)
	return s.Store.Accounts(ctx)
}

func (s *viewReads) AccountsNamed(ctx context.Context, names ...vedette.AccountName) ([]registry.Account, error) {
	s.reads.Add(1)
	return s.Store.AccountsNamed(ctx, names...)
}

func (s *viewReads) AttributesOf(ctx context.Context, objects []read.ObjectRef) ([]read.AttributesRow, error) {
	s.reads.Add(1)
	return s.Store.AttributesOf(ctx, objects)
}

func (s *viewReads) NamespaceAttributes(ctx context.Context, namespaces []read.NamespaceRef, kind vedette.Kind) ([]read.AttributesRow, error) {
	s.reads.Add(1)
	return s.Store.NamespaceAttributes(ctx, namespaces, kind)
}

func (s *viewReads) Objects(ctx context.Context, q read.Query) (read.Page, error) {
	s.reads.Add(1)
	return s.Store.Objects(ctx, q)
}

// TestReadsOfViews checks that the number of reads of a view does not depend on how much it
// shows, and that an unchanged application is not read again.
func TestReadsOfViews(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	putApplication(w, "small", 1, 1)
	putApplication(w, "large", 50, 3)
	for path, want := range map[string]int64{
		"/applications": 1, "/applications/APP": 1, "/applications/APP/clusters": 1, "/applications/APP/serverGroups": 5,
		"/applications/APP/serverGroups?expand=true": 5, "/applications/APP/serverGroupManagers": 5, "/applications/APP/clusters/prod": 5,
		"/applications/APP/clusters/prod/deployment%20APP-0/kubernetes": 5, "/serverGroups?applications=APP": 5,
		"/serverGroups/prod/APP/replicaSet%20APP-0": 4, "/instances/prod/APP/pod%20APP-0-0": 2,
	} {
		for _, app := range []string{"small", "large"} {
			s := &viewReads{Store: w.Store}
			url := serve(t, clouddriver.Config{Store: s}) + strings.ReplaceAll(path, "APP", app)
			response, _ := get(t, url)
			if response.StatusCode != http.StatusOK || s.reads.Load() != want {
				t.Errorf("%s of %s: got %d with %d reads, want 200 with %d", path, app, response.StatusCode, s.reads.Load(), want)
			}
			again, _ := get(t, url, "If-None-Match", response.Header.Get("ETag"))
			if more := s.reads.Load() - want; again.StatusCode != http.StatusNotModified || more != 0 && strings.HasPrefix(path, "/applications") {
				t.Errorf("%s of %s, again: got %d with %d reads, want 304 without", path, app, again.StatusCode, more)
			}
		}
	}
}

// TestChangedObjectsAreReadByName checks that a large application is read again as a whole only if the
// relations of its objects may have changed.
func TestChangedObjectsAreReadByName(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", append(viewKinds(), "configmaps")...)
	putApplication(w, "large", 20, 3)
	s := &viewReads{Store: w.Store}
	url := serve(t, clouddriver.Config{Store: s}) + "/applications/large/serverGroups"
	const whole = 4
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"large-0-0","namespace":"large","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet",
		"name":"large-0","uid":"` + workloadUID("large", 0) + `","controller":true}]},"status":{"phase":"%s"}}`
	tag := ""
	for _, tt := range []struct {
		what    string
		do      func()
		reads   int
		changes bool
	}{
		{"the first request", func() {}, whole + 1, true},
		{"a Pod fails", func() { w.Put("prod", fmt.Sprintf(pod, "Failed")) }, 1, true},
		{"a Pod and a ReplicaSet", func() { w.Put("prod", fmt.Sprintf(pod, "Pending"), workload("large", 1, "2")) }, 2, true},
		{"a Pod is gone", func() {
			w.Delete("prod", vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "large", Name: "large-0-0"})
		}, 1, true},
		{"a ConfigMap", func() {
			w.Put("prod", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"large"}}`)
		}, 0, false},
		{"a Pod without an owner", func() { w.Put("prod", readtest.Pod("large", "stray", "other")) }, 1, false},
		{"a Pod that becomes ours", func() { w.Put("prod", strings.Replace(fmt.Sprintf(pod, "Running"), "large-0-0", "stray", 1)) }, 1, true},
		{"a new ReplicaSet", func() { w.Put("prod", workload("large", 20, "1")) }, 1 + whole, true},
		{"a Service of another application", func() {
			w.Put("prod", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"foreign","namespace":"large"},"spec":{"selector":{"app":"large"}}}`)
		}, 1 + whole, true},
		{"very many", func() {
			var pods []string
			for i := range 300 {
				pods = append(pods, readtest.Pod("large", fmt.Sprint("many-", i), "other"))
			}
			w.Put("prod", pods...)
		}, whole, false},
	} {
		tt.do()
		s.reads.Store(0)
		response, body := get(t, url)
		if response.StatusCode != http.StatusOK || int(s.reads.Load()) != tt.reads || (response.Header.Get("ETag") != tag) != tt.changes {
			t.Errorf("%s: got %d with %d reads and %s instead of %s, want 200 with %d: %.100s", tt.what, response.StatusCode, s.reads.Load(),
				response.Header.Get("ETag"), tag, tt.reads, body)
		}
		tag = response.Header.Get("ETag")
	}
}

// TestReplacedRowsAreReleased checks that all rows are read now and then, because rows that others have
// replaced stay in memory until then.
func TestReplacedRowsAreReleased(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	putApplication(w, "large", 40, 5)
	s := &viewReads{Store: w.Store}
	url := serve(t, clouddriver.Config{Store: s}) + "/applications/large/serverGroups"
	get(t, url)
	whole := 0
	for i := range 20 {
		var pods []string
		for j := range 200 {
			pods = append(pods, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"large-%d-%d","namespace":"large","labels":{"round":"%d-%[2]d"},
				"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"large-0","uid":%[4]q,"controller":true}]},"status":{"phase":"Running"}}`,
				j/5, j%5, i, workloadUID("large", 0)))
		}
		w.Put("prod", pods...)
		s.reads.Store(0)
		if response, body := get(t, url); response.StatusCode != http.StatusOK || !json.Valid(body) {
			t.Fatalf("got %d %.100s", response.StatusCode, body)
		}
		if s.reads.Load() > 1 {
			whole++
		}
	}
	if whole == 0 || whole > 10 {
		t.Errorf("got %d reads of all rows in 20, want few", whole)
	}
}

// TestViewsShowChanges checks that each view shows what was stored before its request.
func TestViewsShowChanges(t *testing.T) {
	w := viewWorld(t)
	url := serve(t, clouddriver.Config{Store: w.Store})
	paths := []string{"/applications", "/applications/shop", "/applications/shop/clusters", "/applications/shop/clusters/prod", "/applications/shop/serverGroups",
		"/applications/shop/serverGroups?expand=true", "/serverGroups?applications=shop"}
	tags := map[string]string{}
	expect := func(text string, visible bool) {
		t.Helper()
		for _, path := range paths {
			response, body := get(t, url+path, "If-None-Match", tags[path])
			if response.StatusCode == http.StatusNotModified || bytes.Contains(body, []byte(text)) != visible {
				t.Errorf("%s: got %d %s, want %q visible: %v", path, response.StatusCode, body, text, visible)
			}
			tags[path] = response.Header.Get("ETag")
		}
	}
	expect("job shop-late", false)
	o := w.Put("prod", `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"late","namespace":"far","annotations":{"moniker.spinnaker.io/application":"shop","moniker.spinnaker.io/cluster":"job shop-late"}}}`)
	expect("job shop-late", true)
	w.Delete("prod", o[0].Key)
	expect("job shop-late", false)
	if err := w.Store.RemoveAccount(t.Context(), "prod"); err != nil {
		t.Fatal(err)
	}
	expect("cronJob nightly", false)
}

// TestChangesOfPodsAndServicesShow checks changes of objects that belong to other applications.
func TestChangesOfPodsAndServicesShow(t *testing.T) {
	w := viewWorld(t)
	url := serve(t, clouddriver.Config{Store: w.Store}) + "/applications/shop/serverGroups"
	for _, step := range []struct{ manifest, text string }{
		{`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"stray","namespace":"shop","annotations":{"moniker.spinnaker.io/application":"other"},
			"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5b7d9","uid":"a0000000-0000-4000-8000-000000000002","controller":true}]}}`, `"pod stray"`},
		{`{"apiVersion":"v1","kind":"Service","metadata":{"name":"foreign","namespace":"shop"},"spec":{"selector":{"app":"checkout"}}}`, `"service foreign"`},
	} {
		if _, body := get(t, url); bytes.Contains(body, []byte(step.text)) {
			t.Errorf("got %s before it was stored", step.text)
		}
		w.Put("prod", step.manifest)
		if _, body := get(t, url); !bytes.Contains(body, []byte(step.text)) {
			t.Errorf("got %s, want %s", body, step.text)
		}
	}
}

// TestViewsShowWhatWasStoredBefore changes an application while several callers read it. Each answer must show
// at least what was stored before its request.
func TestViewsShowWhatWasStoredBefore(t *testing.T) {
	w := viewWorld(t)
	handler := clouddriver.New(clouddriver.Config{Store: w.Store})
	var stored atomic.Int64
	var group sync.WaitGroup
	for _, path := range []string{"/applications", "/applications/shop/clusters", "/applications/shop/serverGroups", "/applications/shop/serverGroups?expand=true",
		"/applications/shop/serverGroups", "/applications/shop/clusters/prod"} {
		group.Go(func() {
			for stored.Load() < 30 {
				before := stored.Load()
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
				if want := fmt.Sprintf("job late-%02d", before); recorder.Code != http.StatusOK || before > 0 && !strings.Contains(recorder.Body.String(), want) {
					t.Errorf("%s: got %d without %s", path, recorder.Code, want)
				}
			}
		})
	}
	for i := range 30 {
		w.Put("prod", fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"late-%02[1]d","namespace":"shop",
			"annotations":{"moniker.spinnaker.io/application":"shop","moniker.spinnaker.io/cluster":"job late-%02[1]d"}}}`, i+1))
		stored.Store(int64(i + 1))
	}
	group.Wait()
}

// TestAnswersOfCallersAreNotMixed checks that answers to callers who see different accounts are not mixed up.
func TestAnswersOfCallersAreNotMixed(t *testing.T) {
	url := serve(t, clouddriver.Config{Store: viewWorld(t).Store, Authorizer: grants{"application shop READ", "dev READ"}})
	for range 2 {
		_, all := get(t, serve(t, clouddriver.Config{Store: viewWorld(t).Store})+"/applications/shop/serverGroupManagers")
		response, some := get(t, url+"/applications/shop/serverGroupManagers", "X-SPINNAKER-USER", "dev")
		if response.StatusCode != http.StatusOK || !bytes.Contains(some, []byte(`"account":"dev"`)) || bytes.Contains(some, []byte(`"account":"prod"`)) || !bytes.Contains(all, []byte(`"account":"prod"`)) {
			t.Errorf("got %d %s for one account, and %s for all", response.StatusCode, some, all)
		}
		if response, body := get(t, url+"/applications/shop/serverGroupManagers"); response.StatusCode != http.StatusForbidden {
			t.Errorf("without a user: got %d %s, want 403", response.StatusCode, body)
		}
	}
	_, body := get(t, url+"/applications/shop/serverGroups?clusters=prod:deployment%20web", "X-SPINNAKER-USER", "dev")
	if string(body) != "[]\n" {
		t.Errorf("a cluster of a hidden account: got %s, want []", body)
	}
}

// TestLargeViewsAreCompressed checks both forms of an answer that is kept in compressed form.
func TestLargeViewsAreCompressed(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	putApplication(w, "big", 40, 5)
	url := serve(t, clouddriver.Config{Store: w.Store}) + "/applications/big/serverGroups"
	_, plain := get(t, url, "Accept-Encoding", "gzip;q=0")
	response, packed := get(t, url, "Accept-Encoding", "br, gzip;q=0.8")
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatalf("got %v and %.20q, want gzip", err, packed)
	}
	unpacked, err := io.ReadAll(reader)
	if err != nil || response.Header.Get("Content-Encoding") != "gzip" || !bytes.Equal(unpacked, plain) || !json.Valid(plain) || len(packed) > len(plain)/5 {
		t.Errorf("got %d bytes of %s, error %v, and %d bytes plain", len(packed), response.Header.Get("Content-Encoding"), err, len(plain))
	}
}

// onlyZebra shows one application.
type onlyZebra struct{}

func (onlyZebra) Snapshot() (func(string) bool, uint64) {
	return func(name string) bool { return name == "zebra" }, 1
}

func TestOnlyKnownApplicationsAreShown(t *testing.T) {
	url := serve(t, clouddriver.Config{Store: viewWorld(t).Store, Applications: onlyZebra{}})
	for path, want := range map[string]string{
		"/applications":               `[{"name":"zebra","attributes":{"name":"zebra"},"clusterNames":{"dev":["zebra-main-canary"]}}]`,
		"/applications/shop/clusters": "{}", "/applications/shop/serverGroups": "[]", "/applications/shop/serverGroupManagers": "[]",
		"/applications/zebra/clusters": `{"dev":["zebra-main-canary"]}`, "/serverGroups?ids=prod:shop:deployment%20web": "[]",
	} {
		if _, body := get(t, url+path); strings.TrimSpace(string(body)) != want {
			t.Errorf("%s: got %s, want %s", path, body, want)
		}
	}
	if response, body := get(t, url+"/applications/shop"); response.StatusCode != http.StatusNotFound {
		t.Errorf("got %d %s, want 404", response.StatusCode, body)
	}
}

// TestKeptListEqualsAFreshOne changes some of many applications, and compares the list with the one of a
// server that has just started.
func TestKeptListEqualsAFreshOne(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	w.Account("dev", viewKinds()...)
	deployment := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"namespace":"shop"}}`, name)
	}
	old := serve(t, clouddriver.Config{Store: w.Store})
	for _, step := range []func(){
		func() {},
		func() {
			w.Put("prod", deployment("beta"), deployment("Alpha"), deployment("alpha"), deployment("gamma"))
		},
		func() { w.Put("dev", deployment("beta-x"), deployment("delta")) },
		func() {
			w.Delete("prod", vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Namespace: "shop", Name: "Alpha"})
		},
		func() { w.Put("prod", deployment("zeta")) },
		func() {
			w.Register(vedette.Account{Name: "prod", Properties: vedette.Properties{OnlySpinnakerManaged: true}}, viewKinds()...)
		},
	} {
		step()
		_, kept := get(t, old+"/applications")
		_, fresh := get(t, serve(t, clouddriver.Config{Store: w.Store})+"/applications")
		if !bytes.Equal(kept, fresh) {
			t.Fatalf("got\n%s\nwant\n%s", kept, fresh)
		}
		var list []struct{ Name string }
		if err := json.Unmarshal(kept, &list); err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(list, func(x, y struct{ Name string }) int {
			return strings.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name))
		}) {
			t.Errorf("got %s, want it sorted by name in lower case", kept)
		}
	}
	if _, body := get(t, old+"/applications"); !bytes.Contains(body, []byte("delta")) || bytes.Contains(body, []byte("zeta")) {
		t.Errorf("got %s, want only applications of dev: prod shows only what Spinnaker deployed", body)
	}
}

// TestLargeApplicationList changes some of many applications. The list must have the same bytes as
// that of a server that has just started, also in compressed form, though most of it is kept.
func TestLargeApplicationList(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	deployments := func(from, to int) {
		var manifests []string
		for i := from; i < to; i++ {
			manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"app%d","namespace":"shop"}}`, i))
		}
		w.Put("prod", manifests...)
	}
	deployments(0, 2000)
	old := serve(t, clouddriver.Config{Store: w.Store})
	for name, step := range map[string]func(){
		"unchanged": func() {},
		"one more":  func() { deployments(2000, 2001) },
		"many more": func() { deployments(2001, 2300) },
		"one less": func() {
			w.Delete("prod", vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Namespace: "shop", Name: "app1000"})
		},
		"another cluster": func() {
			w.Put("prod", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"app500-main","namespace":"shop"}}`)
		},
	} {
		step()
		fresh := serve(t, clouddriver.Config{Store: w.Store})
		for _, encoding := range []string{"gzip", "identity"} {
			_, got := get(t, old+"/applications", "Accept-Encoding", encoding)
			_, want := get(t, fresh+"/applications", "Accept-Encoding", encoding)
			if !bytes.Equal(got, want) {
				t.Errorf("%s, %s: got %d bytes, want the same %d as of another server", name, encoding, len(got), len(want))
			}
			if encoding == "identity" && !json.Valid(got) {
				t.Errorf("%s: got invalid JSON", name)
			}
			if encoding == "gzip" {
				reader, err := gzip.NewReader(bytes.NewReader(got))
				if err != nil {
					t.Fatal(err)
				}
				_, plain := get(t, fresh+"/applications", "Accept-Encoding", "identity")
				if unpacked, err := io.ReadAll(reader); err != nil || !bytes.Equal(unpacked, plain) {
					t.Errorf("%s: got %d bytes and error %v in compressed form, want %d", name, len(unpacked), err, len(plain))
				}
			}
		}
	}
}
