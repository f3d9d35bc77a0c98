package writetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// RandomBatches are tests that compare a store with a map.
var RandomBatches = map[string]func(*testing.T, *store.Store){
	"random batches, seed 1": func(t *testing.T, s *store.Store) { testOracle(t, s, 1) },
	"random batches, seed 2": func(t *testing.T, s *store.Store) { testOracle(t, s, 2) },
}

// oracle is a trivial store in memory.
type oracle struct {
	random  *rand.Rand
	w       *storetest.Writer
	objects map[vedette.Key]vedette.Object
	version int
}

var oracleKinds = []vedette.Kind{storetest.Pods, storetest.Services, storetest.ReplicaSets, storetest.Roles}

func testOracle(t *testing.T, s *store.Store, seed uint64) {
	var oracles []*oracle
	for _, account := range []vedette.AccountName{"one", "two"} {
		w := storetest.NewWriter(t, s, account, storetest.FeedOf(storetest.Pods), namespacedFeed(storetest.Services, "n0"),
			namespacedFeed(storetest.Services, "n1"),
			namespacedFeed(storetest.Services, "n2"), storetest.FeedOf(storetest.ReplicaSets), storetest.FeedOf(storetest.Roles))
		oracles = append(oracles, &oracle{rand.New(rand.NewPCG(seed, uint64(len(account)))), w, map[vedette.Key]vedette.Object{}, 0})
	}
	for range 40 {
		for _, o := range oracles {
			o.step()
		}
	}
	var want []string
	for _, o := range oracles {
		o.checkFeeds()
		for _, key := range slices.SortedFunc(maps.Keys(o.objects), compareKeys) {
			want = append(want, fmt.Sprintf("%s %s@%s", o.w.Account, key, o.objects[key].ResourceVersion))
		}
	}
	rows := storetest.QueryAll(t, s, read.Query{Limit: 23, Bodies: true})
	storetest.Equal(t, fmt.Sprintf("seed %d", seed), storetest.RowNames(rows), want)
	for _, r := range rows {
		o := oracles[slices.IndexFunc(oracles, func(o *oracle) bool { return o.w.Account == r.Account })].objects[r.Key]
		if r.UID != o.UID || string(r.Body) != string(o.Body) || !maps.Equal(r.Labels, o.Labels) || !maps.Equal(r.Annotations, o.Annotations) {
			t.Errorf("seed %d: got %+v\nwant %+v", seed, r.Object, o)
		}
	}
	checkSelector(t, s, oracles)
}

func compareKeys(a, b vedette.Key) int {
	for _, pair := range [][2]string{{a.Kind.Name, b.Kind.Name}, {a.Namespace, b.Namespace}, {a.Name, b.Name}} {
		if pair[0] != pair[1] {
			if pair[0] < pair[1] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// step commits a random batch to the store and to the oracle.
func (o *oracle) step() {
	var b commit.Batch
	want := map[string]bool{}
	for range o.random.IntN(60) {
		key := o.key()
		if slices.ContainsFunc(b.Upserts, func(u vedette.Object) bool {
			return u.Key == key
		}) || slices.Contains(b.Deletes, commit.Deletion{Key: key}) {
			continue
		}
		old, exists := o.objects[key]
		switch roll := o.random.IntN(10); {
		case roll < 3:
			b.Deletes = append(b.Deletes, commit.Deletion{Key: key})
			delete(o.objects, key)
			if exists {
				want["deleted "+key.String()] = true
			}
		case roll < 5 && exists:
			b.Upserts = append(b.Upserts, old)
		default:
			created := o.newObject(key)
			b.Upserts = append(b.Upserts, created)
			o.objects[key] = created
			want[map[bool]string{true: "modified ", false: "added "}[exists]+key.String()] = true
		}
	}
	o.drop(&b, want)
	storetest.Equal(o.w.T, "changes", storetest.ChangeNames(o.w.Commit(b)), slices.Sorted(maps.Keys(want)))
	if o.random.IntN(4) == 0 { // so that later steps change an inventory that is read already
		storetest.CheckInventory(o.w.T, o.w.Store)
	}
}

func (o *oracle) key() vedette.Key {
	kind := oracleKinds[o.random.IntN(len(oracleKinds))]
	key := vedette.Key{Kind: kind, Name: fmt.Sprint("object-", o.random.IntN(40))}
	if kind != storetest.Roles {
		key.Namespace = fmt.Sprint("n", o.random.IntN(3))
	}
	return key
}

func (o *oracle) newObject(key vedette.Key) vedette.Object {
	o.version++
	created := storetest.Object(key.Kind, key.Namespace, key.Name, fmt.Sprint(o.version))
	created.UID = fmt.Sprintf("%08x-0000-4000-8000-%012x", o.random.Uint32(), o.random.Uint32())
	created.Labels = map[string]string{"app": fmt.Sprint("app-", o.random.IntN(4))}
	created.Annotations = map[string]string{"moniker.spinnaker.io/cluster": fmt.Sprint("replicaSet web-", o.random.IntN(5))}
	if o.random.IntN(3) > 0 {
		created.Annotations["moniker.spinnaker.io/application"] = fmt.Sprint("app-", o.random.IntN(3))
	}
	if o.random.IntN(5) == 0 {
		created.Annotations["caching.spinnaker.io/ignore"] = "true"
	}
	if o.random.IntN(3) == 0 {
		created.Labels["tier"] = fmt.Sprint(o.random.IntN(2))
	}
	return created
}

// drop adds a drop of one Pod or ReplicaSet that the batch does not name.
func (o *oracle) drop(b *commit.Batch, want map[string]bool) {
	for key, old := range o.objects {
		if key.Kind != storetest.Pods && key.Kind != storetest.ReplicaSets || slices.ContainsFunc(b.Upserts,
			func(u vedette.Object) bool { return u.Key == key }) {
			continue
		}
		b.Drops = append(b.Drops, commit.Drop{Feed: storetest.FeedOf(key.Kind), Digests: []uint64{vedette.Digest(old.Namespace, old.Name,
			old.UID, old.ResourceVersion)}})
		delete(o.objects, key)
		want["deleted "+key.String()] = true
		return
	}
}

func (o *oracle) checkFeeds() {
	feeds, err := o.w.Store.Marks(o.w.T.Context(), o.w.Account)
	if err != nil {
		o.w.T.Fatal(err)
	}
	for _, f := range feeds {
		var want int64
		for key := range o.objects {
			if key.Kind == f.Feed.Kind && (f.Feed.Namespace == "" || f.Feed.Namespace == key.Namespace) {
				want++
			}
		}
		if f.Objects != want {
			o.w.T.Errorf("feed %s of %s: got a count of %d, want %d", f.Feed, f.Account, f.Objects, want)
		}
	}
}

func checkSelector(t *testing.T, s *store.Store, oracles []*oracle) {
	want := 0
	for _, o := range oracles {
		for _, created := range o.objects {
			if _, tier := created.Labels["tier"]; created.Labels["app"] == "app-1" && !tier {
				want++
			}
		}
	}
	if got := len(storetest.QueryAll(t, s, read.Query{Selector: "app=app-1,!tier", Limit: 11})); got != want {
		t.Errorf("got %d objects by selector, want %d", got, want)
	}
}
