package target

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette/internal/client"
)

// TestResolveAsksForTheNamespace checks that the server is asked about the namespace that an argument names: an agent may report the kind in
// another one only.
func TestResolveAsksForTheNamespace(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		q := r.URL.Query()
		asked = append(asked, q.Get("account")+" "+q.Get("namespace")+" "+q.Get("name"))
		var items []string
		for name := range strings.SplitSeq(q.Get("name"), ",") {
			items = append(items, fmt.Sprintf(`{"name":%q,"kind":"K"}`, name))
		}
		_, _ = fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(items, ","))
	}))
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Resolve(t.Context(), c, "prod-*", "shop", []ResourceArg{{Kind: "pods"}, {Kind: "pods", Namespace: "of-a-file", Name: "a"},
		{Account: "dev", Kind: "pods", Namespace: "other", Name: "a"}, {Account: "dev", Kind: "nodes", Name: "a"}})
	slices.Sort(asked)
	if want := "dev  nodes|dev other pods|prod-* of-a-file pods|prod-* shop pods"; err != nil || len(all) != 4 || strings.Join(asked, "|") != want {
		t.Errorf("got %v, %v, asked %q, want %q", all, err, strings.Join(asked, "|"), want)
	}
}
