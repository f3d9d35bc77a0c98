package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
)

// fleetOf returns a world of n accounts without objects, each with a feed of nodes and one of pods.
func fleetOf(t testing.TB, n int) *readtest.Fixture {
	t.Helper()
	world := readtest.New(t)
	for i := range n {
		world.Account(vedette.AccountName(fmt.Sprintf("prod-%04d", i)), "nodes", "pods")
	}
	return world
}

type namedItem struct{ Name, Account, Kind string }

// readPages returns the items of all pages, in the form "name" or "account/kind".
func readPages(w *validatingClient, path string) (items []string, pages int) {
	w.t.Helper()
	for cursor := ""; ; {
		page := getJSON[struct {
			Items  []namedItem
			Total  int
			Cursor string
		}](w, path+cursor)
		for _, item := range page.Items {
			items = append(items, strings.Trim(item.Name+item.Account+"/"+item.Kind, "/"))
		}
		pages++
		if page.Cursor == "" {
			if page.Total != len(items) {
				w.t.Errorf("%s: got a total of %d and %d items", path, page.Total, len(items))
			}
			return items, pages
		}
		cursor = "&cursor=" + page.Cursor
	}
}

// TestEachItemIsOnOnePage reads accounts and feeds page by page: each item is on one page, in order.
func TestEachItemIsOnOnePage(t *testing.T) {
	w := serve(t, configOf(fleetOf(t, 23)))
	for path, want := range map[string]struct {
		items, pages int
		last         string
	}{
		"/accounts?limit=23":                            {23, 1, "prod-0022"},
		"/accounts?limit=10":                            {23, 3, "prod-0022"},
		"/accounts?limit=22":                            {23, 2, "prod-0022"},
		"/accounts?limit=4&account=prod-001*":           {10, 3, "prod-0019"},
		"/accounts?limit=1&account=prod-0003,prod-0001": {2, 2, "prod-0003"},
		"/feeds?limit=46":                               {46, 1, "prod-0022/Pod"},
		"/feeds?limit=7":                                {46, 7, "prod-0022/Pod"},
		"/feeds?limit=1&account=prod-002*":              {6, 6, "prod-0022/Pod"},
		"/feeds?limit=5&kind=nodes":                     {23, 5, "prod-0022/Node"},
	} {
		items, pages := readPages(w, path)
		last := ""
		for n, item := range items {
			if n > 0 && item <= items[n-1] {
				t.Errorf("%s: got %s after %s", path, item, items[n-1])
			}
			last = item
		}
		if len(items) != want.items || pages != want.pages || last != want.last {
			t.Errorf("%s: got %d items on %d pages, the last is %q; want %+v", path, len(items), pages, last, want)
		}
	}
}

// TestPagesOfAgents checks that connected agents have pages, too.
func TestPagesOfAgents(t *testing.T) {
	world := fleetOf(t, 1)
	var agents []api.Agent
	for i := range 9 {
		agents = append(agents, api.Agent{ID: vedette.AgentID(fmt.Sprintf("a%d", i)),
			Accounts: []api.AgentAccount{{Name: vedette.AccountName(fmt.Sprintf("prod-%d", i%2)), Role: api.Cacher}}})
	}
	world.Fleet.SetAgents(agents...)
	w := serve(t, configOf(world))
	for path, want := range map[string]int{"/agents?limit=9": 1, "/agents?limit=4": 3, "/agents?limit=3&account=prod-0": 2} {
		var ids []string
		pages := 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			page := getJSON[struct {
				Items  []struct{ ID string }
				Total  int
				Cursor string
			}](w, path+cursor)
			for _, item := range page.Items {
				ids = append(ids, item.ID)
			}
			cursor = ""
			if page.Cursor != "" {
				cursor = "&cursor=" + page.Cursor
			}
			if page.Total != 9 && page.Total != 5 {
				t.Errorf("%s: got a total of %d", path, page.Total)
			}
		}
		if pages != want || !slices.IsSorted(ids) || len(slices.Compact(ids)) != len(ids) || ids[0] != "a0" || ids[len(ids)-1] != "a8" {
			t.Errorf("%s: got %v on %d pages, want %d pages", path, ids, pages, want)
		}
	}
}

func TestInvalidPagesAreRejected(t *testing.T) {
	w := serve(t, configOf(fleetOf(t, 2)))
	feedCursor := getJSON[struct{ Cursor string }](w, "/feeds?limit=1").Cursor
	for _, path := range []string{"/accounts?limit=0", "/accounts?limit=5001", "/feeds?limit=x", "/accounts?cursor=%25", "/feeds?cursor=WyJhIl0",
		"/accounts?cursor=" + feedCursor, "/feeds?cursor=a&cursor=b"} {
		if response, body := w.get(path); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d %s, want 400", path, response.StatusCode, body)
		}
	}
}

// TestFreshnessOfLargeFleets checks that the freshness of a fleet is complete in its numbers and
// bounded in its list.
func TestFreshnessOfLargeFleets(t *testing.T) {
	world := fleetOf(t, 510) // more than are looked at for each request
	world.SetFeedState("prod-0100", vedette.Kind{Name: "Pod"}, vedette.FeedDenied, "pods is forbidden")
	fresh := getJSON[objectList](serve(t, configOf(world)), "/objects?limit=1")
	if !fresh.Stale || fresh.Feeds != 1020 || len(fresh.Freshness) != 1 || fresh.Freshness[0].Account != "prod-0100" || fresh.Unlisted != 0 || fresh.Watermark == nil {
		t.Errorf("with one feed that is denied: got %+v", fresh)
	}
	for i := range 30 {
		world.Fleet.Disconnect(vedette.AccountName(fmt.Sprintf("prod-%04d", i)))
	}
	w := serve(t, configOf(world))
	got := getJSON[objectList](w, "/objects?limit=1")
	if !got.Stale || got.Feeds != 1020 || len(got.Freshness) != 20 || got.Unlisted != 2*30+1-20 || got.Watermark == nil || got.Watermark.After(*fresh.Watermark) {
		t.Errorf("with 30 accounts without agent: got %+v", got)
	}
	if nodes := getJSON[objectList](w, "/objects?limit=1&kind=nodes"); !nodes.Stale || nodes.Feeds != 510 || nodes.Unlisted != 30-20 {
		t.Errorf("nodes: got %+v", nodes)
	}
	if kinds := getJSON[struct {
		Items []struct {
			Accounts     []string
			AccountCount int
		}
	}](w, "/kinds"); len(kinds.Items) != 2 || len(kinds.Items[0].Accounts) != 100 || kinds.Items[1].AccountCount != 510 {
		t.Errorf("kinds: got %+v", kinds)
	}
	if one := getJSON[objectList](w, "/objects?limit=1&account=prod-0100&kind=nodes"); one.Stale || one.Feeds != 1 {
		t.Errorf("nodes of the account whose pods are denied: got %+v", one)
	}
}

// TestAgentsWithOneID checks that agents that share an ID are all listed, with what is wrong.
func TestAgentsWithOneID(t *testing.T) {
	world := fleetOf(t, 1)
	connected := time.Now()
	var agents []api.Agent
	for i := range 3 {
		agents = append(agents, api.Agent{ID: "a", Hostname: fmt.Sprint("host-", i), Connected: connected.Add(time.Duration(i)), Message: "its ID is also that of another"})
	}
	world.Fleet.SetAgents(agents...)
	w := serve(t, configOf(world))
	var hosts []string
	for cursor, more := "", true; more; more = cursor != "" {
		page := getJSON[struct {
			Items  []struct{ Hostname, Message string }
			Cursor string
		}](w, "/agents?limit=1"+cursor)
		for _, item := range page.Items {
			hosts = append(hosts, item.Hostname)
			if item.Message != "its ID is also that of another" {
				t.Errorf("got message %q", item.Message)
			}
		}
		cursor = ""
		if page.Cursor != "" {
			cursor = "&cursor=" + page.Cursor
		}
	}
	if !slices.Equal(hosts, []string{"host-0", "host-1", "host-2"}) {
		t.Errorf("got agents on %v, want all three", hosts)
	}
}

// countingStore counts the reads of accounts and feeds.
type countingStore struct {
	*store.Store
	reads atomic.Int64
}

func (s *countingStore) Accounts(ctx context.Context) ([]registry.Account, error) {
	s.reads.Add(1)
	return s.Store.Accounts(ctx)
}

func (s *countingStore) AccountsNamed(ctx context.Context, names ...vedette.AccountName) ([]registry.Account, error) {
	s.reads.Add(1)
	return s.Store.AccountsNamed(ctx, names...)
}

func (s *countingStore) Feeds(ctx context.Context, names ...vedette.AccountName) ([]read.FeedStatus, error) {
	s.reads.Add(1)
	return s.Store.Feeds(ctx, names...)
}

// TestPagesDoNotReadTheFleet checks that requests read neither accounts nor feeds once they are
// known, and that the size of the answer does not depend on the number of accounts.
func TestPagesDoNotReadTheFleet(t *testing.T) {
	size := map[int]int{}
	for _, accounts := range []int{2, 200} {
		world := fleetOf(t, accounts)
		world.Put("prod-0000", readtest.Node("node-1"))
		db := &countingStore{Store: world.Store}
		cfg := configOf(world)
		cfg.Store = db
		w := serve(t, cfg)
		w.get("/objects?limit=1")
		before := db.reads.Load()
		for _, query := range []string{"", "&kind=nodes", "&account=prod-0000", "&account=prod-0*", "&namespace=shop"} {
			if response, body := w.get("/objects?limit=1" + query); response.StatusCode != http.StatusOK {
				t.Errorf("%s: got %d %s", query, response.StatusCode, body)
			}
		}
		if after := db.reads.Load(); after != before {
			t.Errorf("with %d accounts: got %d reads of accounts or feeds, want none", accounts, after-before)
		}
		_, body := w.get("/objects?limit=1")
		size[accounts] = len(body)
	}
	if size[200] > size[2]+10 { // the number of feeds has more digits
		t.Errorf("got %d bytes with 2 accounts and %d with 200", size[2], size[200])
	}
}
