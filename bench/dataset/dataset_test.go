package dataset_test

import (
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/bench/dataset"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

func fill(t *testing.T, d dataset.Dataset) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "vedette.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := dataset.Fill(t.Context(), st, d); err != nil {
		t.Fatal(err)
	}
	return st
}

func count(t *testing.T, st *store.Store, q read.Query) int64 {
	t.Helper()
	page, err := st.Objects(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return page.Total
}

// TestFillWritesTheDescribedNumbers checks accounts, objects, applications and Pods of a small
// dataset.
func TestFillWritesTheDescribedNumbers(t *testing.T) {
	st := fill(t, dataset.Dataset{Accounts: 3, Objects: 301, OtherApplications: 5, Applications: []dataset.Application{
		{Name: "shop", Workloads: 5, PodsPerWorkload: 4, Accounts: 2}}})
	accounts, err := st.Accounts(t.Context())
	if err != nil || len(accounts) != 3 || accounts[2].Name != dataset.AccountName(2) {
		t.Fatalf("got accounts %v, %v", accounts, err)
	}
	pods := []vedette.Kind{{Name: "Pod"}}
	for name, c := range map[string]struct {
		query read.Query
		want  int64
	}{
		"objects":                        {read.Query{}, 301},
		"objects of an account":          {read.Query{Accounts: []vedette.AccountName{dataset.AccountName(2)}}, 100},
		"objects of the application":     {read.Query{Application: "shop"}, 5 * (6 + 4)},
		"pods of the application":        {read.Query{Application: "shop", Kinds: pods}, 20},
		"pods in the second account":     {read.Query{Application: "shop", Kinds: pods, Accounts: []vedette.AccountName{dataset.AccountName(1)}}, 8},
		"the last of the applications":   {read.Query{Application: "app00002000", Kinds: []vedette.Kind{{Group: "apps", Name: "Deployment"}}}, 11},
		"applications beyond the shares": {read.Query{Application: "app00002001"}, 0},
	} {
		if got := count(t, st, c.query); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	feeds, err := st.Feeds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range feeds {
		if f.State != vedette.FeedLive || f.Mark == "" {
			t.Errorf("feed %s of %s: got state %s and mark %q", f.Feed, f.Account, f.State, f.Mark)
		}
	}
}

// TestObjectsHaveProjections checks that objects have the summaries that table views read.
func TestObjectsHaveProjections(t *testing.T) {
	st := fill(t, dataset.Mixed().Scale(500))
	page, err := st.Objects(t.Context(), read.Query{Kinds: []vedette.Kind{{Name: "Pod"}}, Limit: 1})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("got %d pods, %v", len(page.Items), err)
	}
	if pod := page.Items[0]; len(pod.Summary) == 0 || pod.Owner.Kind.Name != "ReplicaSet" || pod.Moniker.App == "" {
		t.Errorf("got the pod %+v", pod)
	}
}

func TestScaleKeepsTheProportions(t *testing.T) {
	d := dataset.Mixed().Scale(10)
	if d.Accounts != 5 || d.Objects != 10_000 || d.Applications[0].Workloads != 100 || d.Applications[0].Accounts != 1 || d.Applications[1].Workloads != 1 {
		t.Errorf("got %+v", d)
	}
}

// TestChangerChangesAStoredPod checks that a change is one of an object that Fill wrote.
func TestChangerChangesAStoredPod(t *testing.T) {
	d := dataset.Mixed().Scale(100)
	st := fill(t, d)
	c, err := d.NewChanger(dataset.SmallApplication)
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := st.Object(t.Context(), c.Account, first.Key)
	if err != nil || stored.UID != first.UID || stored.ResourceVersion == first.ResourceVersion || first.ResourceVersion == second.ResourceVersion {
		t.Errorf("got %s of %s and %s, but version %s is stored: %v", first.ResourceVersion, first.UID, second.ResourceVersion, stored.ResourceVersion, err)
	}
	if len(second.Summary) == 0 || stored.Moniker.App != dataset.SmallApplication {
		t.Errorf("got the summary %s of application %s", second.Summary, stored.Moniker.App)
	}
	if _, err := d.NewChanger("none"); err == nil {
		t.Error("an unknown application: got no error")
	}
}

// TestClusterChangerChangesTheInventory checks that each change gives the application another
// cluster.
func TestClusterChangerChangesTheInventory(t *testing.T) {
	d := dataset.Mixed().Scale(100)
	c, err := d.NewClusterChanger(dataset.SmallApplication)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"deployment bench-1", "deployment bench-2"} {
		o, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if m := vedette.MonikerOf(o.Key, o.Annotations); m.App != dataset.SmallApplication || m.Cluster != want {
			t.Errorf("got the moniker %+v, want the cluster %s of %s", m, want, dataset.SmallApplication)
		}
	}
}
