package infrastructure

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/store/read"
)

// universe holds all objects of a store.
type universe map[objectKey]Object

// rows returns what the store's methods would return for an application.
func (u universe) rows(name string) *Rows {
	rows := &Rows{}
	owners, managers := map[read.OwnerRef]bool{}, map[read.OwnerRef]bool{}
	selected := map[namespaceKey]bool{}
	for _, o := range u {
		if o.Moniker.App != name || !slices.Contains(LogicalKinds, o.Kind) {
			continue
		}
		rows.Own = append(rows.Own, o)
		ref := read.OwnerRef{Account: o.Account, UID: o.UID}
		owners[ref] = owners[ref] || slices.Contains(ServerGroupKinds, o.Kind)
		managers[ref] = managers[ref] || o.Kind == deployment
		key := namespaceKey{o.Account, o.Namespace}
		selected[key] = selected[key] || slices.Contains(selectedKinds, o.Kind)
	}
	for _, o := range u {
		ref := read.OwnerRef{Account: o.Account, UID: o.Owner.UID}
		switch {
		case o.Kind == InstanceKinds[0] && owners[ref]:
			rows.Pods = append(rows.Pods, o)
		case o.Kind == replicaSet && managers[ref]:
			rows.ReplicaSets = append(rows.ReplicaSets, o)
		case o.Kind == service && o.Moniker.App != name && selected[namespaceKey{o.Account, o.Namespace}]:
			rows.Services = append(rows.Services, o)
		}
	}
	return rows.referred()
}

// change changes an object at random, and returns which.
func (u universe) change(random *rand.Rand) Object {
	kind := []string{"pod", "pod", "pod", "pod", "replicaSet", "replicaSet", "deployment", "statefulSet", "service", "job"}[random.IntN(10)]
	o := object(fmt.Sprintf("%s n%d/%d", kind, random.IntN(2), random.IntN(4)), labeled("app=web"))
	o.Moniker.App = []string{"web", "web", "web", "other"}[random.IntN(4)]
	if before, ok := u[keyOf(&o)]; ok && random.IntN(3) > 0 { // most changes are of the status
		o = before
	} else if kind == "pod" || kind == "replicaSet" {
		ownedBy(fmt.Sprintf("%s n%d/%d", map[string]string{"pod": "replicaSet", "replicaSet": "deployment"}[kind], random.IntN(2), random.IntN(4)))(&o)
	}
	o.Phase = []string{"Running", "Pending"}[random.IntN(2)]
	if kind == "service" {
		selecting([]string{"app=web", "app=x"}[random.IntN(2)])(&o)
	}
	if u[keyOf(&o)] = o; random.IntN(5) == 0 {
		delete(u, keyOf(&o))
	}
	return o
}

// describeAll is describe with the states of instances.
func describeAll(a *Application) string {
	var b strings.Builder
	b.WriteString(describe(a))
	for _, g := range a.ServerGroups {
		fmt.Fprintln(&b, g.Name, g.Counts)
	}
	return b.String()
}

// TestRowsAfterChanges changes objects at random, and compares the rows that follow from the
// changes with all rows that there are.
func TestRowsAfterChanges(t *testing.T) {
	effects := map[changeEffect]int{}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // not secret
		u := universe{}
		for range 30 {
			u.change(random)
		}
		rows := u.rows("web")
		for step := range 200 {
			changed := map[objectKey]*Object{}
			for range 1 + random.IntN(3) {
				o := u.change(random)
				changed[keyOf(&o)] = nil
			}
			for key := range changed {
				if o, ok := u[key]; ok {
					changed[key] = &o
				}
			}
			want := u.rows("web")
			before := describeAll(Build("web", rows))
			got, effect := rows.after(changed, "web")
			effects[effect]++
			switch effect {
			case changesRelations:
				got = want
			case changesNothing:
				if got != rows || describeAll(Build("web", want)) != before {
					t.Fatalf("seed %d, step %d: got no change from\n%swant\n%s", seed, step, before, describeAll(Build("web", want)))
				}
			case changesRows:
			}
			if d := describeAll(Build("web", got)); d != describeAll(Build("web", want)) {
				t.Fatalf("seed %d, step %d, %v: got\n%swant\n%s", seed, step, slices.Collect(maps.Keys(changed)), d, describeAll(Build("web", want)))
			}
			rows = got
		}
	}
	for _, effect := range []changeEffect{changesNothing, changesRows, changesRelations} {
		if effects[effect] < 50 {
			t.Errorf("got the effect %d %d times, want it often", effect, effects[effect])
		}
	}
}
