package clouddriver_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/read"
)

// searchableWorld has objects of the application open, and, between them, some that others may see.
func searchableWorld(t *testing.T, hidden bool) *readtest.Fixture {
	w := readtest.New(t)
	for _, account := range []vedette.AccountName{"prod", "other"} {
		w.Account(account, "pods")
	}
	for i := range 7 {
		for _, application := range []string{"closed", "open"} {
			namespace := fmt.Sprintf("shop-%d", i)
			if application == "open" || hidden {
				w.Put("prod", readtest.Pod(namespace, "web-"+application, application))
			}
		}
		if hidden {
			w.Put("other", readtest.Pod("shop", fmt.Sprint("web-", i), "open"))
			w.Put("prod", readtest.Pod("shop", fmt.Sprint("web-", i), fmt.Sprint("closed-", i)))
		}
	}
	return w
}

// TestHiddenObjectsDoNotChangeSearches compares what a caller finds with what he would find if the objects that he may
// not see did not exist.
func TestHiddenObjectsDoNotChangeSearches(t *testing.T) {
	may := grants{"prod READ", "application open READ", "application  READ"}
	with := serve(t, clouddriver.Config{Store: searchableWorld(t, true).Store, Authorizer: may})
	without := serve(t, clouddriver.Config{Store: searchableWorld(t, false).Store, Authorizer: may})
	found := 0
	for _, query := range []string{"q=web&type=pod", "q=shop&type=pod,applications,clusters", "q=&type=pod", "q=open&type=pod", "q=closed&type=pod,clusters",
		"q=s*web&type=pod", "q=replicaSet&type=pod,clusters", "q=prod:shop&type=pod"} {
		for page := range 9 {
			path := fmt.Sprintf("/search?%s&pageSize=2&page=%d", query, page+1)
			got, gotBody := get(t, with+path, "X-SPINNAKER-USER", "dev")
			want, wantBody := get(t, without+path, "X-SPINNAKER-USER", "dev")
			if got.StatusCode != http.StatusOK || string(gotBody) != string(wantBody) || !sameHeaders(got.Header, want.Header) {
				t.Errorf("%s: got %d %s %v, want as without hidden objects: %s %v", path, got.StatusCode, gotBody, got.Header, wantBody, want.Header)
			}
			found += strings.Count(string(gotBody), `"kubernetesKind":"pod"`)
		}
	}
	if found < 7*5 {
		t.Errorf("got %d objects, want each in most searches", found)
	}
}

// beginOperations stores an operation of each account, the newest last.
func beginOperations(t *testing.T, w *readtest.Fixture, accounts ...vedette.AccountName) {
	for i, account := range accounts {
		row := history.Operation{ID: vedette.OperationID(fmt.Sprintf("01J0000000000000000000000%d", i)), Account: account, Server: "server-1",
			Verb: vedette.VerbScale, Accepted: time.UnixMilli(1_000_000)}
		if err := w.Store.BeginOperation(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
}

func sameHeaders(x, y http.Header) bool {
	without := func(h http.Header) http.Header {
		h = maps.Clone(h)
		h.Del("Date")
		return h
	}
	return maps.EqualFunc(without(x), without(y), slices.Equal)
}

// manyObjects is a store with more objects than one answer may have.
type manyObjects struct {
	*store.Store
	searched bool
}

func (*manyObjects) CountSearch(context.Context, read.SearchQuery) (int64, error) {
	return 50_001, nil
}

func (m *manyObjects) Search(ctx context.Context, q read.SearchQuery) ([]read.SearchRow, error) {
	m.searched = true
	return m.Store.Search(ctx, q)
}

// TestAnswersWithoutPagesAreBounded asks for objects that are too many for one answer.
func TestAnswersWithoutPagesAreBounded(t *testing.T) {
	many := &manyObjects{Store: searchableWorld(t, true).Store}
	server := serve(t, clouddriver.Config{Store: many})
	for _, path := range []string{"/securityGroups", "/securityGroups/prod", "/kubernetes/loadBalancers/service%20web"} {
		if response, body := get(t, server+path); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "ask for one account") {
			t.Errorf("%s: got %d %s, want %d", path, response.StatusCode, body, http.StatusServiceUnavailable)
		}
	}
	if many.searched {
		t.Error("objects were read that are too many")
	}
}

// TestHiddenOperationsLeaveNoHoles reads the history as a caller who may read one of two accounts.
func TestHiddenOperationsLeaveNoHoles(t *testing.T) {
	w := readtest.New(t)
	for _, account := range []vedette.AccountName{"prod", "other"} {
		w.Account(account, "pods")
	}
	beginOperations(t, w, "prod", "other", "other", "prod", "gone", "prod", "other", "prod")
	server := serve(t, clouddriver.Config{Store: w.Store, Authorizer: grants{"prod READ"}})
	for page, want := range []int{2, 2, 0} {
		_, body := get(t, fmt.Sprintf("%s/armory/agent/operations?items=2&page=%d", server, page+1), "X-SPINNAKER-USER", "dev")
		if got := strings.Count(string(body), `"account":"prod"`); got != want || strings.Contains(string(body), "other") {
			t.Errorf("page %d: got %s, want %d operations", page+1, body, want)
		}
	}
}
