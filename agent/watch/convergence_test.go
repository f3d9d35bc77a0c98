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

// TestFeedEqualsListAfterFaults creates and deletes objects during a series of faults, which is the same
// for the same seed. Once all faults are healed, the result of the events must equal a list.
func TestFeedEqualsListAfterFaults(t *testing.T) {
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, seed))
	p := newControlPlane(t)
	c := connect(t, p.Kubeconfig())
	r := newRecorder()
	selection := watch.Selection{Kinds: []string{"cm"}}
	w, stop := start(t, c, selection, r, fastConfig, nil)
	existing := map[string]bool{}
	for round := range 12 {
		changeObjects(t, p, rnd, existing)
		earlierMarks := r.marks()
		changeObjects(t, p, rnd, existing)
		switch fault := rnd.IntN(6); fault {
		case 0:
			w.Reset(configMapFeed, "")
		case 1:
			w.Reset(configMapFeed, earlierMarks[configMapFeed])
		case 2:
			p.KillAPIServer()
			must(t, p.StartAPIServer(t.Context()))
		case 3:
			must(t, p.Expire(t.Context()))
		case 4:
			stop()
			changeObjects(t, p, rnd, existing)
			w, stop = start(t, c, selection, r, fastConfig, r.marks())
		case 5:
			w.Reset(configMapFeed, vedette.Mark(fmt.Sprint(round)))
		}
	}
	changeObjects(t, p, rnd, existing)
	want := listVersions(t, p, "/api/v1/configmaps")
	r.await(t, "the feed to equal the list", func() bool {
		return allLive(r) && maps.Equal(r.feeds[configMapFeed].objects, want)
	})
	r.check(t)
}

// changeObjects creates, updates or deletes some objects.
func changeObjects(t *testing.T, p *controlplane.Plane, rnd *rand.Rand, existing map[string]bool) {
	t.Helper()
	for range 10 {
		name := fmt.Sprintf("m%d", rnd.IntN(40))
		switch {
		case !existing[name]:
			must(t, p.Create(t.Context(), configMaps, configMap(name, "1")))
			existing[name] = true
		case rnd.IntN(2) == 0:
			must(t, p.Patch(t.Context(), configMaps+"/"+name, object{"data": object{"value": fmt.Sprint(rnd.Int())}}))
		default:
			must(t, p.Delete(t.Context(), configMaps+"/"+name))
			delete(existing, name)
		}
	}
}
