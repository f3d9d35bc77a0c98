package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/readtest"
	"github.com/vedette-io/vedette/server/store/history"
)

type operation struct {
	ID, Account, Verb, Target, User, Origin, Server, Agent, State, Reason, Message string
	Claimed, Proven, Service, Address, Undoes                                      string
	Changes                                                                        []struct {
		Kind, Namespace, Name, Note                 string
		ResourceVersionBefore, ResourceVersionAfter string
		Patch                                       []map[string]any
	}
	Status      int
	DryRun      bool
	Accepted    time.Time
	Sent, Ended *time.Time
}

type operations struct {
	Items     []operation
	Cursor    string
	Retention *struct{ KeepSeconds, MaxBytes, Entries, Bytes int64 }
}

func (o operations) ids() string {
	var ids []string
	for _, i := range o.Items {
		ids = append(ids, i.ID[25:])
	}
	return strings.Join(ids, "")
}

// seedHistory adds operations to a world's history: of dev, prod-1, prod-3 and a deleted
// account, in this order. The last one is pending.
func seedHistory(t *testing.T, world *readtest.Fixture) {
	t.Helper()
	for i, account := range []vedette.AccountName{"dev", "prod-1", "prod-3", "gone"} {
		row := history.Operation{ID: vedette.OperationID(fmt.Sprintf("01J0000000000000000000000%d", i+1)), Account: account, Server: "s1", Verb: vedette.VerbScale, DryRun: account == "prod-3",
			Target: "Deployment shop/web", Requester: vedette.Requester{User: "ann", Proven: "certificate CN=ann", Claimed: "bob"}, Kind: "Deployment.apps", Namespace: "shop", Name: "web", Origin: "task 7", State: history.Pending, Accepted: time.UnixMilli(int64(1000 * (i + 1)))}
		if err := world.Store.BeginOperation(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		if account == "gone" {
			continue
		}
		row.Agent, row.Sent, row.Ended = "agent-1", row.Accepted.Add(time.Millisecond), row.Accepted.Add(5*time.Millisecond)
		row.State, row.Status = vedette.Done, 200
		row.Undoes = "01J00000000000000000000009"
		row.Changes = []vedette.ObjectChange{{Key: vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Namespace: "shop", Name: "web"}, Before: "7", After: "8",
			Patch: json.RawMessage(`[{"op":"add","path":"/a","value":1}]`), Note: "cut"}}
		if account == "prod-3" {
			row.State, row.Status, row.Reason, row.Message = vedette.Failed, 403, "Forbidden", "no"
		}
		if err := world.Store.EndOperations(t.Context(), []history.Operation{row}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHistoryIsFilteredAndPaged(t *testing.T) {
	world := shopWorld(t)
	seedHistory(t, world)
	w := serve(t, configOf(world))
	for query, want := range map[string]string{
		"": "4321", "account=prod-*": "32", "account=gone": "4", "account=dev,gone": "41", "state=failed": "3", "state=pending": "4",
		"user=ann": "4321", "user=bob": "", "object=deploy/web": "4321", "object=deployments.apps/web": "4321", "object=pod/web": "",
		"object=deployment/api": "", "object=gadget/web": "", "namespace=shop": "4321", "namespace=other": "",
		"since=1970-01-01T00:00:02Z": "432", "since=1970-01-01T00:00:02Z&until=1970-01-01T00:00:03Z": "2", "since=1h": "", "until=1h": "4321",
		"endedSince=1970-01-01T00:00:02Z": "32",
		"verb=scale&agent=agent-1":        "321", "verb=get": "", "origin=task+7&limit=2": "43", "origin=api": "", "agent=nobody": "",
	} {
		if got := getJSON[operations](w, "/operations?"+query).ids(); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	first := getJSON[operations](w, "/operations?limit=3")
	if next := getJSON[operations](w, "/operations?limit=3&cursor="+first.Cursor); first.ids() != "432" || next.ids() != "1" || next.Cursor != "" {
		t.Errorf("got pages %s and %s", first.ids(), next.ids())
	}
	for query, want := range map[string]string{"account=prod-2": "did you mean prod-1 or prod-3?", "state=over": "must be pending", "verb=aply": "must be", "limit=0": "from 1 to",
		"since=2099-01-01T00:00:00Z": "it is in the future, and now it is 20",
		"until=-5m":                  "it is in the future", "endedSince=x": "must be how long ago",
		"since=1h&until=2h": "is not before until", "since=1h&until=1h": "is not before until",
		"object=web": "must be KIND/NAME", "object=": "must be KIND/NAME", "object=a/b/c": "must be KIND/NAME",
		"status=done": "did you mean state?", "cursor=" + strings.Repeat("x", 30): "request the first page again"} {
		if response, body := w.get("/operations?" + query); response.StatusCode < 400 || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %d %s", query, response.StatusCode, body)
		}
	}
}

func TestOperationIsShownWithItsChanges(t *testing.T) {
	world := shopWorld(t)
	seedHistory(t, world)
	cfg := configOf(world)
	w := serve(t, cfg)
	one := getJSON[operation](w, "/operations/01J00000000000000000000003")
	if one.Account != "prod-3" || one.Verb != "scale" || one.Target != "Deployment shop/web" || one.User != "ann" || one.Claimed != "bob" || one.Proven != "certificate CN=ann" || one.Origin != "task 7" || one.Server != "s1" ||
		one.Agent != "agent-1" || one.State != "failed" || one.Status != 403 || one.Reason != "Forbidden" || one.Message != "no" ||
		one.Accepted.UnixMilli() != 3000 || one.Sent.UnixMilli() != 3001 || one.Ended.UnixMilli() != 3005 {
		t.Errorf("got %+v", one)
	}
	if c := one.Changes; len(c) != 1 || c[0].Kind != "Deployment.apps" || c[0].Namespace != "shop" || c[0].Name != "web" || c[0].ResourceVersionBefore != "7" ||
		c[0].ResourceVersionAfter != "8" || len(c[0].Patch) != 1 || c[0].Note != "cut" || one.Undoes != "01J00000000000000000000009" {
		t.Errorf("got the changes %+v, undoes %q", c, one.Undoes)
	}
	if timed := getJSON[operation](w, "/operations/01J00000000000000000000001"); !one.DryRun || timed.DryRun {
		t.Errorf("dry runs: got %v, %v", one.DryRun, timed.DryRun)
	}
	if response, body := w.get("/operations/01J00000000000000000000009"); response.StatusCode != 404 {
		t.Errorf("got %d %s, want %d", response.StatusCode, body, 404)
	}
	cfg.Authorizer = staticAuthorizer{read: "prod-1", write: "dev"}
	w = serve(t, cfg)
	if got := getJSON[operations](w, "/operations").ids(); got != "21" {
		t.Errorf("with permission for one account: got %s", got)
	}
	for path, want := range map[string]int{"/operations/01J00000000000000000000003": http.StatusNotFound, "/operations/01J00000000000000000000002": http.StatusOK,
		"/operations?account=prod-3": http.StatusForbidden, "/operations?account=prod-*": http.StatusOK} {
		if response, body := w.get(path); response.StatusCode != want {
			t.Errorf("%s: got %d %s, want %d", path, response.StatusCode, body, want)
		}
	}
}

func TestHistoryTellsItsRetention(t *testing.T) {
	world := shopWorld(t)
	cfg := configOf(world)
	cfg.History = func() api.History {
		return api.History{Keep: time.Hour, MaxBytes: 1 << 30, Size: history.Size{Entries: 3, Bytes: 2000, Oldest: time.UnixMilli(5)}}
	}
	got := getJSON[operations](serve(t, cfg), "/operations").Retention
	if got == nil || got.KeepSeconds != 3600 || got.MaxBytes != 1<<30 || got.Entries != 3 || got.Bytes != 2000 {
		t.Errorf("got %+v", got)
	}
}
