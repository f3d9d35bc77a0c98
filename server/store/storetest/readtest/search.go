package readtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// Search are tests that search.
var Search = map[string]func(*testing.T, *store.Store){
	"finds what is in a key": testSearchByKey, "pages": testSearchPages, "related": testSearchRelated, "hidden": testSearchHidden,
	"exact names": testSearchNames, "rules": testSearchRules, "applications that are added": testSearchAddedApplications,
	"without anything": testSearchNothing,
}

const searchPrefix = "cache:objects:"

// searchableName names the kinds that the tests search, in the case of Clouddriver.
func searchableName(kind vedette.Kind) string {
	return map[vedette.Kind]string{storetest.Pods: "pod", storetest.Services: "service", storetest.Deployments: "deploymentKind"}[kind]
}

// namedObject returns an object of an application and a cluster.
func namedObject(kind vedette.Kind, namespace, name, application, cluster string) vedette.Object {
	o := storetest.Object(kind, namespace, name, "1")
	o.Annotations = map[string]string{"moniker.spinnaker.io/application": application, "moniker.spinnaker.io/cluster": cluster}
	return o
}

// searchableObjects are in every account of fillForSearch.
func searchableObjects() []vedette.Object {
	return []vedette.Object{
		namedObject(storetest.Pods, "shop", "web-0", "shop", "replicaSet web"), namedObject(storetest.Pods, "shop", "web-1", "shop",
			"replicaSet web"),
		namedObject(storetest.Pods, "pay", "Web_1", "pay", "x"), namedObject(storetest.Services, "shop", "web", "shop", ""),
		namedObject(storetest.Services, "web", "api%1", "api", ""), namedObject(storetest.Deployments, "shop", "front[1]", "shop",
			"deployment front"),
		namedObject(storetest.Deployments, "pay", "ledger", "pay", "deployment ledger"), namedObject(storetest.Roles, "", "web", "shop", ""),
	}
}

func fillForSearch(t *testing.T, s *store.Store) {
	t.Helper()
	for i, account := range []vedette.AccountName{"prod", "Staging"} {
		w := storetest.NewWriter(t, s, account)
		w.Put(searchableObjects()[:i*3]...)
		if err := s.BuildNameFilters(t.Context()); err != nil { // half of the names are written afterwards
			t.Fatal(err)
		}
		w.Put(searchableObjects()...)
	}
}

// testSearchByKey compares with a search of all keys in memory.
func testSearchByKey(t *testing.T, s *store.Store) {
	fillForSearch(t, s)
	for _, text := range []string{"", "web", "Web", "WEB", "prod", "staging", "Staging", "pod", "deploymentKind", "deploymentkind",
		"service", "cache",
		"objects:pod", "pod:prod:shop:web-1", "prod:sho", "shop:web", ":shop:", "e:prod", "web_1", "Web_1", "%", "api%", "_", "[1]", "front[",
		"!",
		"?", "\\", "'", "web*1", "1*web", "*", "p*:*1", "shop*", "*web", "nope", "web-0 "} {
		t.Run(text, func(t *testing.T) {
			var want []string
			for _, account := range []string{"prod", "Staging"} {
				for _, o := range searchableObjects() {
					key := searchPrefix + searchableName(o.Kind) + ":" + account + ":" + o.Namespace + ":" + o.Name
					if searchableName(o.Kind) != "" && containsInOrder(key, strings.Split(text, "*")) {
						want = append(want, account+" "+o.Key.String())
					}
				}
			}
			q := read.SearchQuery{Text: text, KeyPrefix: searchPrefix, KindName: searchableName, Limit: 100}
			checkFound(t, s, q, want)
		})
	}
}

func containsInOrder(key string, parts []string) bool {
	for _, part := range parts {
		_, after, found := strings.Cut(key, part)
		if !found {
			return false
		}
		key = after
	}
	return true
}

func checkFound(t *testing.T, s *store.Store, q read.SearchQuery, want []string) {
	t.Helper()
	rows, err := s.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if got := foundNames(rows); !slices.Equal(got, want) {
		t.Errorf("%q: got %q, want %q", q.Text, got, want)
	}
	n, err := s.CountSearch(t.Context(), q)
	if err != nil || n != int64(len(want)) {
		t.Errorf("count of %q: got %d, error %v, want %d", q.Text, n, err, len(want))
	}
}

// foundNames returns "account kind namespace/name" of each row, sorted.
func foundNames(rows []read.SearchRow) []string {
	var names []string
	for _, r := range rows {
		names = append(names, string(r.Account)+" "+r.Key.String())
	}
	slices.Sort(names)
	return names
}

func testSearchPages(t *testing.T, s *store.Store) {
	fillForSearch(t, s)
	q := read.SearchQuery{Text: "web", KeyPrefix: searchPrefix, KindName: searchableName, Limit: 100}
	all, err := s.Search(t.Context(), q)
	if err != nil || len(all) < 4 {
		t.Fatalf("got %d rows, error %v", len(all), err)
	}
	var paged []read.SearchRow
	for q.Limit = 3; ; q.Offset += 3 {
		page, err := s.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
	}
	if !slices.Equal(paged, all) {
		t.Errorf("pages: got %v, want %v", paged, all)
	}
}

func testSearchRelated(t *testing.T, s *store.Store) {
	fillForSearch(t, s)
	for _, tt := range []struct {
		text         string
		applications []string // that a caller would find in the inventory
		want         []string // of account prod
	}{
		{"shop", []string{"shop"}, []string{"Pod shop/web-0", "Pod shop/web-1", "Service shop/web", "Deployment.apps shop/front[1]"}},
		{"ledger", []string{"pay"}, []string{"Deployment.apps pay/ledger"}},
		{"deployment", []string{"pay", "shop"}, []string{"Deployment.apps pay/ledger", "Deployment.apps shop/front[1]"}},
		{"prod", []string{"pay", "shop"}, []string{"Deployment.apps pay/ledger", "Deployment.apps shop/front[1]"}},
		{"prod:shop", []string{"shop"}, []string{"Deployment.apps shop/front[1]"}},
		{"app*:shop", []string{"shop"}, []string{"Pod shop/web-0", "Pod shop/web-1", "Service shop/web", "Deployment.apps shop/front[1]"}},
		{"nope", nil, nil},
	} {
		t.Run(tt.text, func(t *testing.T) {
			var want []string
			for _, name := range tt.want {
				want = append(want, "prod "+name)
			}
			checkFound(t, s, read.SearchQuery{Text: tt.text, KeyPrefix: searchPrefix, KindName: searchableName, Limit: 100,
				CanRead: func(account vedette.AccountName) bool { return account == "prod" },
				Related: &read.RelatedQuery{ApplicationPrefix: "cache:app:", ClusterPrefix: "cache:clusters:", Applications: tt.applications,
					Kinds: []vedette.Kind{storetest.Pods, storetest.Services, storetest.Deployments}}}, want)
		})
	}
	t.Run("kinds that belong to no application, but in one account", func(t *testing.T) {
		checkFound(t, s, read.SearchQuery{Text: "shop", KeyPrefix: searchPrefix, KindName: searchableName, Limit: 100,
			Related: &read.RelatedQuery{Applications: []string{"shop"}, Kinds: []vedette.Kind{storetest.Services, storetest.Roles},
				AllKinds: map[vedette.AccountName]bool{"Staging": true}}},
			[]string{"prod Service shop/web", "Staging Service shop/web", "Staging Pod shop/web-0", "Staging Pod shop/web-1",
				"Staging Deployment.apps shop/front[1]"})
	})
	t.Run("more applications than the index is asked for", func(t *testing.T) {
		q := read.SearchQuery{Text: "", KeyPrefix: searchPrefix, KindName: searchableName, Limit: 100,
			Related: &read.RelatedQuery{ApplicationPrefix: "cache:app:", ClusterPrefix: "cache:clusters:", Kinds: []vedette.Kind{storetest.Pods,
				storetest.Services, storetest.Deployments}}}
		for i := range 3000 {
			q.Related.Applications = append(q.Related.Applications, fmt.Sprint("app-", i))
		}
		if n, err := s.CountSearch(t.Context(), q); err != nil || n != 14 {
			t.Errorf("got %d objects, error %v, want all 14", n, err)
		}
	})
}

func testSearchHidden(t *testing.T, s *store.Store) {
	ignored, manual := namedObject(storetest.Pods, "shop", "ignored", "shop", ""), storetest.Object(storetest.Pods, "shop", "manual", "1")
	ignored.Annotations["caching.spinnaker.io/ignore"] = "true"
	manual.Annotations = nil
	both := namedObject(storetest.Pods, "shop", "both", "shop", "")
	for _, account := range []vedette.AccountName{"prod", "strict"} {
		storetest.NewWriter(t, s, account).Put(ignored, manual, both)
	}
	q := read.SearchQuery{KeyPrefix: searchPrefix, KindName: searchableName, Limit: 100,
		OnlyManaged: map[vedette.AccountName]bool{"strict": true}}
	checkFound(t, s, q, []string{"prod Pod shop/both", "prod Pod shop/manual", "strict Pod shop/both"})
	q.CanRead = func(account vedette.AccountName) bool { return account == "strict" }
	checkFound(t, s, q, []string{"strict Pod shop/both"})
	if err := s.RemoveAccount(t.Context(), "strict"); err != nil {
		t.Fatal(err)
	}
	checkFound(t, s, q, nil)
}

func testSearchNames(t *testing.T, s *store.Store) {
	fillForSearch(t, s)
	q := read.SearchQuery{KeyPrefix: searchPrefix, KindName: searchableName, Limit: 100, Name: "web-0"}
	checkFound(t, s, q, []string{"Staging Pod shop/web-0", "prod Pod shop/web-0"})
	q.Name, q.Namespace = "", "web"
	checkFound(t, s, q, []string{"Staging Service web/api%1", "prod Service web/api%1"})
}

func testSearchRules(t *testing.T, s *store.Store) {
	fillForSearch(t, s)
	isOneOf := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	inProd := func(account vedette.AccountName) bool { return account == "prod" }
	for _, tt := range []struct {
		name  string
		rules []read.ApplicationRule
		want  []string
	}{
		{"one is shown", []read.ApplicationRule{{Shows: isOneOf("pay")}}, []string{"prod Deployment.apps pay/ledger", "prod Pod pay/Web_1"}},
		{"one is hidden", []read.ApplicationRule{{Shows: isOneOf("pay", "api")}},
			[]string{"prod Deployment.apps pay/ledger", "prod Pod pay/Web_1", "prod Service web/api%1"}},
		{"all are hidden", []read.ApplicationRule{{Shows: isOneOf()}}, nil},
		{"all are shown", []read.ApplicationRule{{Shows: isOneOf("pay", "api", "shop")}, {Shows: isOneOf(),
			Kinds: []vedette.Kind{storetest.Pods, storetest.Deployments}}},
			[]string{"prod Service shop/web", "prod Service web/api%1"}},
		{"names are equal if their bytes are", []read.ApplicationRule{{Shows: isOneOf("PAY", "pay ")}}, nil},
		{"two rules", []read.ApplicationRule{{Shows: isOneOf("shop", "pay")}, {Shows: isOneOf("pay"), Kinds: []vedette.Kind{storetest.Pods}}},
			[]string{"prod Deployment.apps pay/ledger", "prod Deployment.apps shop/front[1]", "prod Pod pay/Web_1", "prod Service shop/web"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := read.SearchQuery{KeyPrefix: searchPrefix, KindName: searchableName, Limit: 100, CanRead: inProd, Rules: tt.rules}
			checkFound(t, s, q, slices.Clone(tt.want))
			var paged []read.SearchRow
			for q.Limit = 1; q.Offset < int64(len(tt.want)); q.Offset++ {
				page, err := s.Search(t.Context(), q)
				if err != nil || len(page) != 1 {
					t.Fatalf("page %d: got %v, error %v, want one row", q.Offset, page, err)
				}
				paged = append(paged, page...)
			}
			if got := foundNames(paged); !slices.Equal(got, tt.want) {
				t.Errorf("pages: got %q, want %q", got, tt.want)
			}
		})
	}
}

// testSearchAddedApplications lets a rule learn of an application after the database was asked which there are.
func testSearchAddedApplications(t *testing.T, s *store.Store) {
	fillForSearch(t, s)
	for _, tt := range []struct {
		name  string
		until int // which question the application appears at
		want  vedette.ErrorKind
	}{{"once", 2, ""}, {"again and again", 1000, vedette.Unavailable}} {
		asked := 0
		rule := read.ApplicationRule{Shows: func(name string) bool {
			if name != "pay" {
				return true
			}
			asked++
			return asked%2 == 1 && asked <= tt.until
		}}
		q := read.SearchQuery{KeyPrefix: searchPrefix, KindName: searchableName, Limit: 100, Rules: []read.ApplicationRule{rule}}
		rows, err := s.Search(t.Context(), q)
		if vedette.KindOf(err) != tt.want || slices.ContainsFunc(rows, func(r read.SearchRow) bool { return r.Application == "pay" }) {
			t.Errorf("%s: got %v, error %v, want no object of the application", tt.name, rows, err)
		}
	}
}

func testSearchNothing(t *testing.T, s *store.Store) {
	checkFound(t, s, read.SearchQuery{KindName: searchableName, Limit: 10}, nil)
	fillForSearch(t, s)
	checkFound(t, s, read.SearchQuery{KindName: func(vedette.Kind) string { return "" }, Limit: 10}, nil)
	checkFound(t, s, read.SearchQuery{KindName: searchableName, CanRead: func(vedette.AccountName) bool { return false }, Limit: 10}, nil)
}
