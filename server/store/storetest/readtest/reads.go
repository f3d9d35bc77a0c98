package readtest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// Reads are tests that read pages of objects.
var Reads = map[string]func(*testing.T, *store.Store){
	"objects are ordered by account, kind, namespace and name, in pages of any size": func(t *testing.T, s *store.Store) {
		var want []string
		for _, account := range []vedette.AccountName{"b", "C", "a-long-one", "a"} { // ids and names have different orders
			w := storetest.NewWriter(t, s, account, storetest.FeedOf(storetest.Services), storetest.FeedOf(storetest.Pods),
				storetest.FeedOf(storetest.Roles), storetest.FeedOf(storetest.Deployments))
			for i, kind := range []vedette.Kind{storetest.Services, storetest.Deployments, storetest.Pods} {
				for n := range 3 + i*4 {
					o := storetest.Object(kind, fmt.Sprint("n", n%2), fmt.Sprintf("x%c", "BabZ-9:_cdefghi"[n]), "1")
					w.Put(o)
					want = append(want, fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%s", account, kind.Name, kind.Group, o.Namespace, o.Name))
				}
			}
		}
		slices.Sort(want)
		for _, limit := range []int{1, 2, 3, 7, 10, 100, 5000} {
			var got []string
			for _, r := range storetest.QueryAll(t, s, read.Query{Limit: limit}) {
				got = append(got, fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%s", r.Account, r.Kind.Name, r.Kind.Group, r.Namespace, r.Name))
			}
			storetest.Equal(t, fmt.Sprint("pages of ", limit), got, want)
		}
	},
	"pages of many accounts, of which few have objects": func(t *testing.T, s *store.Store) {
		var want []string
		for i := range 60 { // more than are read at once, twice
			w := storetest.NewWriter(t, s, vedette.AccountName(fmt.Sprintf("prod-%02d", i)), storetest.FeedOf(storetest.Pods),
				storetest.FeedOf(storetest.Services))
			if i%20 == 19 {
				w.Put(storetest.Object(storetest.Pods, "n", "a", "1"), storetest.Object(storetest.Pods, "n", "b", "1"),
					storetest.Object(storetest.Services, "n", "a", "1"))
				want = append(want, fmt.Sprintf("prod-%02d Pod n/a@1", i), fmt.Sprintf("prod-%02d Pod n/b@1", i))
			}
		}
		for _, limit := range []int{1, 2, 3, 100} {
			storetest.Equal(t, fmt.Sprint("pods in pages of ", limit), storetest.RowNames(storetest.QueryAll(t, s, read.Query{Limit: limit,
				Kinds: []vedette.Kind{storetest.Pods}})), want)
		}
		if total := len(storetest.QueryAll(t, s, read.Query{Limit: 2})); total != 9 {
			t.Errorf("got %d objects, want 9", total)
		}
		for accounts, want := range map[string]map[vedette.Kind]int64{
			"": {storetest.Pods: 6, storetest.Services: 3}, "prod-19": {storetest.Pods: 2, storetest.Services: 1}, "prod-20": {storetest.Pods: 0,
				storetest.Services: 0}, "nobody": {},
		} {
			var names []vedette.AccountName
			if accounts != "" {
				names = append(names, vedette.AccountName(accounts))
			}
			if got, err := s.ObjectCounts(t.Context(), names...); err != nil || !maps.Equal(got, want) {
				t.Errorf("numbers of objects of %q: got %v, %v, want %v", accounts, got, err, want)
			}
		}
	},
	"each filter, alone and combined":       testFilters,
	"selectors match like those of kubectl": testSelectors,
	"bodies are read on request": func(t *testing.T, s *store.Store) {
		storetest.NewWriter(t, s, "prod").Put(storetest.Object(storetest.Pods, "n", "a", "1"))
		for _, bodies := range []bool{false, true} {
			page, err := s.Objects(t.Context(), read.Query{Bodies: bodies})
			if err != nil || (page.Items[0].Body != nil) != bodies {
				t.Errorf("got %+v, %v, want bodies %v", page, err, bodies)
			}
		}
	},
	"a page ends at its byte limit": testPageBytes,
	"the total can be skipped": func(t *testing.T, s *store.Store) {
		storetest.NewWriter(t, s, "prod").Put(storetest.Object(storetest.Pods, "n", "a", "1"))
		if page, err := s.Objects(t.Context(), read.Query{SkipTotal: true}); err != nil || page.Total != -1 {
			t.Errorf("got %+v, %v, want total -1", page, err)
		}
	},
	"invalid queries are rejected": func(t *testing.T, s *store.Store) {
		storetest.NewWriter(t, s, "prod")
		for why, q := range map[string]read.Query{
			"selector": {Selector: "a in (b"}, "limit": {Limit: 5001}, "negative": {Limit: -1}, "cursor": {After: "nonsense"},
			"short cursor": {After: "WyJhIl0"}, "base64": {After: "###"},
		} {
			if _, err := s.Objects(t.Context(), q); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%s: got %v, want an error of kind %s", why, err, vedette.Invalid)
			}
		}
	},
	"what does not exist": func(t *testing.T, s *store.Store) {
		storetest.NewWriter(t, s, "prod").Put(storetest.Object(storetest.Pods, "n", "a", "1"))
		for _, q := range []read.Query{{Accounts: []vedette.AccountName{"nobody"}}, {Kinds: []vedette.Kind{{Name: "Nonesuch"}}},
			{Selector: "app=nothing"}, {Name: "x\x00y"}, {Application: "none"}} {
			if page, err := s.Objects(t.Context(), q); err != nil || len(page.Items) != 0 || page.Total != 0 || page.Next != "" {
				t.Errorf("%+v: got %+v, %v, want an empty page", q, page, err)
			}
		}
		for _, key := range []vedette.Key{{Kind: storetest.Pods, Namespace: "n", Name: "b"}, {Kind: storetest.Pods, Name: "a"},
			{Kind: vedette.Kind{Name: "Nonesuch"}, Name: "a"}, {Kind: storetest.Pods, Name: "\xff"}} {
			if _, err := s.Object(t.Context(), "prod", key); vedette.KindOf(err) != vedette.NotFound {
				t.Errorf("%q: got %v, want an error of kind %s", key, err, vedette.NotFound)
			}
		}
		if _, err := s.Object(t.Context(), "nobody",
			vedette.Key{Kind: storetest.Pods, Namespace: "n", Name: "a"}); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("account: got %v, want an error of kind %s", err, vedette.NotFound)
		}
	},
	"a cursor is valid after its row is deleted": func(t *testing.T, s *store.Store) {
		w := storetest.NewWriter(t, s, "prod")
		w.Put(storetest.Object(storetest.Pods, "n", "a", "1"), storetest.Object(storetest.Pods, "n", "b", "1"),
			storetest.Object(storetest.Pods, "n", "c", "1"))
		page, err := s.Objects(t.Context(), read.Query{Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		w.Commit(commit.Batch{Deletes: storetest.Deletions(vedette.Key{Kind: storetest.Pods, Namespace: "n", Name: "b"})})
		storetest.Equal(t, "rest", storetest.RowNames(storetest.QueryAll(t, s, read.Query{After: page.Next, SkipTotal: true})),
			[]string{"prod Pod n/c@1"})
	},
	"stats": func(t *testing.T, s *store.Store) {
		storetest.NewWriter(t, s, "prod").Put(storetest.Object(storetest.Pods, "n", "a", "1"))
		st, err := s.Stats(t.Context())
		if err != nil || st.Accounts != 1 || st.Objects != 1 || st.Bytes < 4096 {
			t.Errorf("got %+v, %v, want 1 account with 1 object", st, err)
		}
	},
}

func testFilters(t *testing.T, s *store.Store) {
	for _, account := range []vedette.AccountName{"one", "two"} {
		w := storetest.NewWriter(t, s, account)
		for _, kind := range []vedette.Kind{storetest.Pods, storetest.Services} {
			for _, ns := range []string{"n1", "n2"} {
				w.Put(storetest.Object(kind, ns, "a", "1"), storetest.Object(kind, ns, "b", "1"))
			}
		}
	}
	for _, tt := range []struct {
		q    read.Query
		want int
	}{
		{read.Query{}, 16},
		{read.Query{Accounts: []vedette.AccountName{"two"}}, 8},
		{read.Query{Accounts: []vedette.AccountName{"two", "one", "nobody"}}, 16},
		{read.Query{Kinds: []vedette.Kind{storetest.Pods}}, 8},
		{read.Query{Kinds: []vedette.Kind{storetest.Pods, storetest.Services, {Name: "Nonesuch"}}}, 16},
		{read.Query{Namespace: "n1"}, 8},
		{read.Query{Name: "a"}, 8},
		{read.Query{NamePrefix: "a"}, 8},
		{read.Query{NamePrefix: "A"}, 0},
		{read.Query{NamePrefix: "_"}, 0},
		{read.Query{NamePrefix: "x\x00y"}, 0},
		{read.Query{Application: "app-of-b"}, 8},
		{read.Query{Selector: "app=a"}, 8},
		{read.Query{Selector: "app!=a"}, 8},
		{read.Query{Accounts: []vedette.AccountName{"one"}, Kinds: []vedette.Kind{storetest.Pods}, Namespace: "n2", Name: "a",
			Application: "app-of-a",
			Selector:    "app in (a)"}, 1},
		{read.Query{Accounts: []vedette.AccountName{"one"}, Kinds: []vedette.Kind{storetest.Pods}, Namespace: "n2"}, 2},
		{read.Query{Namespace: "n2", Selector: "app notin (b)"}, 4},
		{read.Query{Application: "app-of-a", Name: "b"}, 0},
	} {
		for _, limit := range []int{1, 3, 500} {
			tt.q.Limit = limit
			rows := storetest.QueryAll(t, s, tt.q)
			if len(rows) != tt.want {
				t.Errorf("%+v: got %d rows, want %d", tt.q, len(rows), tt.want)
			}
			if !slices.IsSorted(storetest.RowNames(rows)) {
				t.Errorf("%+v: got rows out of order: %v", tt.q, storetest.RowNames(rows))
			}
		}
	}
}

func testSelectors(t *testing.T, s *store.Store) {
	w := storetest.NewWriter(t, s, "prod")
	for name, labels := range map[string]map[string]string{
		"web": {"app": "web", "tier": "front", "weight": "5"}, "db": {"app": "db", "tier": "back", "weight": "50"},
		"job": {"app": "job"}, "bare": nil, "long": {"example.com/name": "web", "app": ""},
	} {
		o := storetest.Object(storetest.Pods, "n", name, "1")
		o.Labels = labels
		w.Put(o)
	}
	for selector, want := range map[string][]string{
		"app=web":             {"web"},
		"app == web":          {"web"},
		"app=web,tier!=back":  {"web"},
		"app in (web,db)":     {"db", "web"},
		"app notin (web, db)": {"bare", "job", "long"},
		"tier!=back":          {"bare", "job", "long", "web"},
		"!tier":               {"bare", "job", "long"},
		"!app":                {"bare"},
		"app":                 {"db", "job", "long", "web"},
		"app=":                {"long"},
		"weight>5":            {"db"},
		"weight<6":            {"web"},
		"example.com/name":    {"long"},
		"app=web,app=db":      nil,
		" ":                   {"bare", "db", "job", "long", "web"},
		"app,!tier":           {"job", "long"},
	} {
		var got []string
		for _, r := range storetest.QueryAll(t, s, read.Query{Selector: selector}) {
			got = append(got, r.Name)
		}
		storetest.Equal(t, selector, got, want)
	}
}
