package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
)

type nameList struct {
	Items    []string
	Complete bool
}

// awaitNames requests names until enough are found: the store has half a second for them, which a busy machine may exceed.
func awaitNames(w *validatingClient, query string, isEnough func(nameList) bool) nameList {
	w.t.Helper()
	got := getJSON[nameList](w, "/names?"+query)
	for deadline := time.Now().Add(time.Minute); !isEnough(got) && time.Now().Before(deadline); {
		got = getJSON[nameList](w, "/names?"+query)
	}
	return got
}

func TestNamesAreSuggestedByPrefix(t *testing.T) {
	world := shopWorld(t)
	foo := vedette.Resource{Kind: vedette.Kind{Group: "example.com", Name: "Foo"}, Version: "v1", Plural: "foos", Namespaced: true}
	world.Account("eu", "pods", "namespaces", foo)
	world.Put("eu", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shipping"}}`, readtest.Pod("shop", "web-0", "web"), readtest.Pod("shop", "WEB-1", "web"))
	for _, tt := range []struct{ name, query, want string }{
		{"accounts", "of=accounts", "dev eu prod-1 prod-3"},
		{"accounts by prefix", "of=accounts&prefix=prod", "prod-1 prod-3"},
		{"no account", "of=accounts&prefix=x", ""},
		{"kinds, with the group of those that are not of Kubernetes", "of=kinds&account=eu", "foos.example.com namespaces pods"},
		{"kinds by prefix", "of=kinds&prefix=de", "deployments"},
		{"namespaces", "of=namespaces&prefix=sh", "shipping shop"},
		{"namespaces of an account without Namespaces", "of=namespaces&account=dev", ""},
		{"names that several accounts have, once", "of=objects&kind=pods&prefix=web", "web-0"},
		{"upper case is another name", "of=objects&kind=pods&prefix=WEB", "WEB-1"},
		{"names of several kinds", "of=objects&kind=pods,deploy&prefix=web", "web web-0"},
		{"names in a namespace", "of=objects&kind=pods&namespace=billing", "invoice-0"},
		{"names of an account", "of=objects&kind=pods&account=prod-1&prefix=b", "broken-0"},
		{"wildcards are no names", "of=objects&kind=pods&prefix=w*-0", ""},
		{"an underscore is one character", "of=objects&kind=pods&prefix=web_", ""},
	} {
		w := serve(t, configOf(world))
		got := awaitNames(w, tt.query, func(got nameList) bool { return got.Complete })
		if strings.Join(got.Items, " ") != tt.want || !got.Complete {
			t.Errorf("%s: got %q, complete %t, want %q", tt.name, got.Items, got.Complete, tt.want)
		}
	}
}

// TestNamesAreBounded checks that an answer that is cut says so.
func TestNamesAreBounded(t *testing.T) {
	world := readtest.New(t)
	world.Account("dev", "pods")
	var pods []string
	for i := range 150 {
		pods = append(pods, readtest.Pod("shop", fmt.Sprintf("web-%03d", i), "web"))
	}
	world.Put("dev", pods...)
	w := serve(t, configOf(world))
	for query, want := range map[string]int{"": 100, "&limit=7": 7, "&limit=150": 150, "&limit=5000": 150} {
		got := awaitNames(w, "of=objects&kind=pods"+query, func(got nameList) bool { return len(got.Items) >= want })
		if len(got.Items) != want || got.Complete != (want == 150) {
			t.Errorf("%q: got %d names, complete %t, want %d", query, len(got.Items), got.Complete, want)
		}
	}
}

// slowStore is a store whose lists end with their deadline only.
type slowStore struct{ *store.Store }

func (s slowStore) Objects(ctx context.Context, _ read.Query) (read.Page, error) {
	<-ctx.Done()
	return read.Page{}, ctx.Err()
}

func TestNamesOfASlowStore(t *testing.T) {
	world := shopWorld(t)
	cfg := configOf(world)
	cfg.Store = slowStore{world.Store}
	if got := getJSON[nameList](serve(t, cfg), "/names?of=objects&kind=pods"); len(got.Items) != 0 || got.Complete {
		t.Errorf("got %+v, want an incomplete answer without names", got)
	}
}

// TestRowsWithLabelsAndManifests checks what include adds to the rows of a table.
func TestRowsWithLabelsAndManifests(t *testing.T) {
	world := shopWorld(t)
	world.PutBody("dev", readtest.Pod("shop", "web-1", "web"), `{"kind":`)
	w := serve(t, configOf(world))
	type table struct {
		Rows []struct {
			Name     string
			Labels   map[string]string
			Manifest map[string]any
		}
	}
	for query, want := range map[string]string{"": "web-0  <nil> web-1  <nil>", "&include=labels": "web-0 web <nil> web-1 web <nil>",
		"&include=body": "web-0  Pod web-1  <nil>"} {
		var got []string
		for _, row := range getJSON[table](w, "/objects?account=dev&kind=pods&as=table"+query).Rows {
			got = append(got, row.Name, row.Labels["app"], fmt.Sprint(row.Manifest["kind"]))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: got %q, want %q", query, text, want)
		}
	}
}
