package convergence

import (
	"context"
	"fmt"
	"testing"

	"github.com/vedette-io/vedette/test/proxy"
)

// fresh is what readers are told of how far an account is behind its cluster.
type fresh struct {
	Name    string
	Stale   bool
	LagMs   *int64
	Feeds   map[string]int // how many are in each state
	Message string
}

func (w *world) freshness(ctx context.Context) (map[string]fresh, error) {
	var list struct{ Items []fresh }
	err := getJSON(ctx, w.rest+"/vedette/v1/accounts", &list)
	accounts := map[string]fresh{}
	for _, each := range list.Items {
		accounts[each.Name] = each
	}
	return accounts, err
}

// staleness says which accounts readers are told to be stale.
func (w *world) staleness(ctx context.Context) (found []string) {
	told, err := w.freshness(ctx)
	if err != nil {
		return []string{"the server can't be asked how fresh accounts are: " + err.Error()}
	}
	for _, a := range w.accounts {
		if f, known := told[a.name]; !known || f.Stale || f.LagMs == nil {
			lag := "unknown"
			if f.LagMs != nil {
				lag = fmt.Sprintf("%d ms", *f.LagMs)
			}
			found = append(found, fmt.Sprintf("account %s is stale (listed: %v, lag: %s, feeds: %v): %s", a.name, known, lag, f.Feeds, f.Message))
		}
	}
	return found
}

// TestFreshnessIsHonest stops what changes come through, in one place after the other:
// readers are told each time that what they read is stale, and that it no longer is.
// With -skew the clocks of agent and server are wrong, which must make no difference.
func TestFreshnessIsHonest(t *testing.T) {
	t.Parallel() // it waits most of the time
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		way := a.api[c]
		if *skew != 0 { // the clock of a server's first life is wrong like that of its agent
			w.server.stop()
			w.server.start()
			w.settle()
		}
		for _, tt := range []struct {
			why        string
			stop, mend func()
		}{
			{"the agent is frozen", a.pause, a.resume},
			{"the link is frozen upwards", func() { a.link.Freeze(proxy.Up) }, func() { a.link.Cut(); a.link.Heal() }},
			{"the cluster can't be reached", way.Refuse, way.Heal},
			{"the way to the cluster forgot its connections, and leads nowhere", func() { way.Freeze(proxy.Up, proxy.Down) }, func() { way.Cut(); way.Heal() }},
		} {
			tt.stop()
			if !w.within(patience, func(ctx context.Context) bool { return len(w.staleness(ctx)) > 0 }) {
				t.Errorf("%s, and readers are not told that anything is stale", tt.why)
			}
			tt.mend()
			w.settle()
		}
	})
}
