package convergence

import (
	"context"
	"fmt"
	"testing"

	"github.com/vedette-io/vedette/test/proxy"
)

// accountFreshness is what readers are told of how far an account is behind its cluster.
type accountFreshness struct {
	Name    string
	Stale   bool
	LagMs   *int64
	Feeds   map[string]int // how many are in each state
	Message string
}

func (w *world) freshness(ctx context.Context) (map[string]accountFreshness, error) {
	var list struct{ Items []accountFreshness }
	err := getJSON(ctx, w.rest+"/vedette/v1/accounts", &list)
	accounts := map[string]accountFreshness{}
	for _, a := range list.Items {
		accounts[a.Name] = a
	}
	return accounts, err
}

// staleAccounts says which accounts readers are told to be stale.
func (w *world) staleAccounts(ctx context.Context) (found []string) {
	accounts, err := w.freshness(ctx)
	if err != nil {
		return []string{"the server can't be asked how fresh accounts are: " + err.Error()}
	}
	for _, a := range w.accounts {
		if f, known := accounts[a.name]; !known || f.Stale || f.LagMs == nil {
			lag := "unknown"
			if f.LagMs != nil {
				lag = fmt.Sprintf("%d ms", *f.LagMs)
			}
			found = append(found, fmt.Sprintf("account %s is stale (listed: %v, lag: %s, feeds: %v): %s", a.name, known, lag, f.Feeds, f.Message))
		}
	}
	return found
}

// TestStaleDataIsMarkedStale stops what changes come through, in one place after the other:
// readers are told each time that what they read is stale, and that it no longer is.
// With -skew the clocks of agent and server are wrong, which must make no difference.
func TestStaleDataIsMarkedStale(t *testing.T) {
	t.Parallel() // it waits most of the time
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		apiProxy := a.api[c]
		if *skew != 0 { // the clock of a server's first life is wrong like that of its agent
			w.server.stop()
			w.server.start()
			w.awaitConvergence()
		}
		for _, tt := range []struct {
			why           string
			stop, restore func()
		}{
			{"the agent is frozen", a.pause, a.resume},
			{"the link is frozen upwards", func() { a.link.Freeze(proxy.Up) }, func() { a.link.Cut(); a.link.Heal() }},
			{"the cluster can't be reached", apiProxy.Refuse, apiProxy.Heal},
			{"the way to the cluster forgot its connections, and leads nowhere", func() { apiProxy.Freeze(proxy.Up, proxy.Down) }, func() { apiProxy.Cut(); apiProxy.Heal() }},
		} {
			tt.stop()
			if !w.eventually(convergenceTimeout, func(ctx context.Context) bool { return len(w.staleAccounts(ctx)) > 0 }) {
				t.Errorf("%s, and readers are not told that anything is stale", tt.why)
			}
			tt.restore()
			w.awaitConvergence()
		}
	})
}
