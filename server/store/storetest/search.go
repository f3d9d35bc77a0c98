package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

var searchTests = map[string]func(*testing.T, *store.Store){
	"by parts of keys": testSearch,
	"in pages": func(t *testing.T, s *store.Store) {
		w := newWriter(t, s, "prod")
		var want []string
		for i := range 25 {
			w.put(object(pods, "n", fmt.Sprintf("web-%02d", i), "1"), object(services, "n", fmt.Sprintf("web-%02d", i), "1"))
			want = append(want, fmt.Sprintf("prod Pod n/web-%02d", i), fmt.Sprintf("prod Service n/web-%02d", i))
		}
		var got []string
		for offset := 0; ; offset += 7 {
			rows, err := s.SearchAttributes(t.Context(), store.SearchQuery{Text: "web", Limit: 7, Offset: offset})
			if got = append(got, attributeNames(t, rows, err)...); len(rows) < 7 {
				break
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		equal(t, "all pages", got, want)
	},
}

func testSearch(t *testing.T, s *store.Store) {
	var all []string // as Clouddriver's keys
	for _, account := range []vedette.AccountName{"prod", "Prod-EU", "100%_!"} {
		w := newWriter(t, s, account)
		for _, o := range []vedette.Object{object(pods, "shop", "web-1", "1"), object(replicaSets, "shop", "web", "1"),
			object(roles, "", "system:node", "1"), object(services, "prod", "Pod", "1")} {
			w.put(o)
			all = append(all, fmt.Sprintf("kubernetes.v2:infrastructure:%s:%s:%s:%s", o.Kind.Name, account, o.Namespace, o.Name))
		}
	}
	putShop(newWriter(t, s, "removed"))
	if err := s.RemoveAccount(t.Context(), "removed"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "web", "WEB-1", "shop:web", "prod:", "prod:shop:w", "pod:prod", "od:prod:shop", "eplicaset:PROD-eu:shop:web",
		"infrastructure:pod:prod:shop:web-1", "kubernetes.v2:infrastructure:pod:prod:shop:web-1", "s", ":", "::", "::system:node", "system:n",
		"%", "_", "!", "100%_!:shop", "po_", "none", "shop:none", "a\x00", "\xff", strings.Repeat(":", 2000), strings.Repeat("x", 1<<20)} {
		var want []string
		for _, key := range all {
			if strings.Contains(strings.ToLower(key), strings.ToLower(text)) {
				want = append(want, key)
			}
		}
		rows, err := s.SearchAttributes(t.Context(), store.SearchQuery{Text: text, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprintf("kubernetes.v2:infrastructure:%s:%s:%s:%s", r.Kind.Name, r.Account, r.Namespace, r.Name))
		}
		slices.Sort(got)
		slices.Sort(want)
		equal(t, fmt.Sprintf("%.60q", text), got, want)
	}
	rows, err := s.SearchAttributes(t.Context(), store.SearchQuery{Text: "web", Limit: 100, Accounts: []vedette.AccountName{"prod", "none", "a\x00"},
		Kinds: []vedette.Kind{pods, roles}})
	equal(t, "in one account", attributeNames(t, rows, err), []string{"prod Pod shop/web-1"})
}
