package clouddriver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
)

func namespace(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
}

// visibleNamespaces returns the namespaces of each account, as both lists show them.
func visibleNamespaces(t *testing.T, server string) map[string]string {
	t.Helper()
	_, body := get(t, server+"/credentials?expand=true")
	var accounts []struct {
		Name       string
		Namespaces []string
	}
	if err := json.Unmarshal(body, &accounts); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	all := map[string]string{}
	for _, a := range accounts {
		all[a.Name] = strings.Join(a.Namespaces, " ")
		_, single := get(t, server+"/credentials/"+a.Name)
		if err := json.Unmarshal(single, &a); err != nil || strings.Join(a.Namespaces, " ") != all[a.Name] {
			t.Errorf("%s: got %s, want the namespaces %s as in the list", a.Name, single, all[a.Name])
		}
	}
	return all
}

// TestCredentialsFollowNamespaces checks that namespaces appear and disappear, and only where the
// account shows all of them.
func TestCredentialsFollowNamespaces(t *testing.T) {
	w := readtest.New(t)
	found := []string{"default", "old"}
	w.Register(vedette.Account{Name: "all", Namespaces: found, Properties: vedette.Properties{OmitNamespaces: []string{"hidden"}}}, "namespaces", "pods")
	w.Register(vedette.Account{Name: "narrow", Namespaces: found, Properties: vedette.Properties{Namespaces: []string{"shop"}}}, "namespaces")
	w.Register(vedette.Account{Name: "without", Namespaces: found}, "pods")
	server := serve(t, clouddriver.Config{Store: w.Store})
	want := map[string]string{"all": "default old", "narrow": "shop", "without": "default old"}
	check := func(step string) {
		t.Helper()
		if got := visibleNamespaces(t, server); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", step, got, want)
		}
	}
	check("at registration")
	w.Put("all", namespace("default"), namespace("shop"), namespace("hidden"))
	w.Put("narrow", namespace("default"), namespace("shop"))
	want["all"] = "default shop"
	check("after the first sync")
	w.Put("all", namespace("late"), readtest.Pod("late", "web-0", "web"))
	want["all"] = "default late shop"
	check("after a new one")
	w.Delete("all", vedette.Key{Kind: vedette.Kind{Name: "Namespace"}, Name: "shop"})
	want["all"] = "default late"
	check("after a deletion")
	w.Account("more", "namespaces")
	want["more"] = ""
	check("after a new account")
	w.Put("more", namespace("one"))
	if err := w.Store.RemoveAccount(t.Context(), "all"); err != nil {
		t.Fatal(err)
	}
	delete(want, "all")
	want["more"] = "one"
	check("after an account is removed")
}

// countingStore counts reads of accounts.
type countingStore struct {
	*store.Store
	reads []string
}

func (s *countingStore) count(what string, accounts []vedette.AccountName) {
	s.reads = append(s.reads, fmt.Sprint(what, slices.Sorted(slices.Values(accounts)))) // the store names them in any order
}

func (s *countingStore) Accounts(ctx context.Context) ([]registry.Account, error) {
	s.count("accounts", nil)
	return s.Store.Accounts(ctx)
}

func (s *countingStore) AccountsNamed(ctx context.Context, names ...vedette.AccountName) ([]registry.Account, error) {
	s.count("accounts", names)
	return s.Store.AccountsNamed(ctx, names...)
}

func (s *countingStore) Feeds(ctx context.Context, names ...vedette.AccountName) ([]read.FeedStatus, error) {
	s.count("feeds", names)
	return s.Store.Feeds(ctx, names...)
}

func (s *countingStore) Namespaces(ctx context.Context, names ...vedette.AccountName) (map[vedette.AccountName][]string, error) {
	s.count("namespaces", names)
	return s.Store.Namespaces(ctx, names...)
}

// TestCredentialsReadWhatChanged checks that a request reads nothing if nothing has changed, and
// otherwise only what has changed, in two statements at most.
func TestCredentialsReadWhatChanged(t *testing.T) {
	w := readtest.New(t)
	for _, account := range []vedette.AccountName{"a", "b", "c"} {
		w.Account(account, "namespaces", "pods")
	}
	counting := &countingStore{Store: w.Store}
	server := serve(t, clouddriver.Config{Store: counting})
	for _, tt := range []struct {
		step string
		do   func()
		want []string
	}{
		{"the first request", func() {}, []string{"accounts[]", "namespaces[]"}},
		{"nothing has changed", func() {}, nil},
		{"a Pod", func() { w.Put("a", readtest.Pod("shop", "web-0", "web")) }, nil},
		{"a Namespace", func() { w.Put("b", namespace("shop")) }, []string{"namespaces[b]"}},
		{"the same Namespace", func() {}, nil},
		{"a registration", func() { w.Account("c", "namespaces") }, []string{"accounts[b c]", "namespaces[c]"}},
	} {
		tt.do()
		counting.reads = nil
		for _, path := range []string{"/credentials", "/credentials?expand=true"} {
			if response, body := get(t, server+path); response.StatusCode != 200 || !strings.Contains(string(body), `"name":"c"`) {
				t.Errorf("%s: got %d %s", tt.step, response.StatusCode, body)
			}
		}
		if !slices.Equal(counting.reads, tt.want) {
			t.Errorf("%s: got the reads %v, want %v", tt.step, counting.reads, tt.want)
		}
	}
}
