//go:build linux

package watch_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/test/controlplane"
)

// TestConvergence lets objects come and go under a run of faults, the same each
// time for a seed. When all is healed, what the events amount to is what a list
// says.
func TestConvergence(t *testing.T) {
	const seed = 1
	dice := rand.New(rand.NewPCG(seed, seed))
	p := plane(t)
	c := connect(t, p.Kubeconfig())
	r := newRecorder()
	selection := watch.Selection{Kinds: []string{"cm"}}
	w, stop := start(t, c, selection, r, quick, nil)
	there := map[string]bool{}
	for round := range 12 {
		change(t, p, dice, there)
		early := r.marks()
		change(t, p, dice, there)
		switch fault := dice.IntN(6); fault {
		case 0:
			w.Reset(configMapFeed, "")
		case 1:
			w.Reset(configMapFeed, early[configMapFeed])
		case 2:
			p.KillAPIServer()
			must(t, p.StartAPIServer(t.Context()))
		case 3:
			must(t, p.Expire(t.Context()))
		case 4:
			stop()
			change(t, p, dice, there)
			w, stop = start(t, c, selection, r, quick, r.marks())
		case 5:
			w.Reset(configMapFeed, vedette.Mark(fmt.Sprint(round)))
		}
	}
	change(t, p, dice, there)
	want := listed(t, p, "/api/v1/configmaps")
	r.await(t, "the feed to equal the list", func() bool {
		return allLive(r) && maps.Equal(r.feeds[configMapFeed].objects, want)
	})
	r.check(t)
}

// change writes or deletes some objects.
func change(t *testing.T, p *controlplane.Plane, dice *rand.Rand, there map[string]bool) {
	t.Helper()
	for range 10 {
		name := fmt.Sprintf("m%d", dice.IntN(40))
		switch {
		case !there[name]:
			must(t, p.Create(t.Context(), configMaps, configMap(name, "1")))
			there[name] = true
		case dice.IntN(2) == 0:
			must(t, p.Patch(t.Context(), configMaps+"/"+name, object{"data": object{"value": fmt.Sprint(dice.Int())}}))
		default:
			must(t, p.Delete(t.Context(), configMaps+"/"+name))
			delete(there, name)
		}
	}
}
