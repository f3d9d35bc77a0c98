package convergence

import (
	"context"
	"fmt"
	"testing"

	"github.com/vedette-io/vedette/test/proxy"
)

// accountFreshness is how far an account is behind its cluster, according to the API.
type accountFreshness struct {
	Name    string
	Stale   bool
	LagMs   *int64
	Feeds   map[string]int // number of feeds by state
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

// staleAccounts describes the accounts that the API reports as stale.
func (w *world) staleAccounts(ctx context.Context) (found []string) {
	accounts, err := w.freshness(ctx)
	if err != nil {
		return []string{"the freshness of accounts cannot be read: " + err.Error()}
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

// TestStaleDataIsMarkedStale stops changes in one place after the other. Each time, the API must
// report the data as stale, and later as fresh again. With -skew the clocks of agent and server are
// wrong, which must make no difference.
func TestStaleDataIsMarkedStale(t *testing.T) {
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		apiProxy := a.api[c]
		if *skew != 0 { // the clock of a server's first run has the same error as its agent's
			w.server.Stop()
			w.server.Start()
			w.awaitConvergence()
		}
		for _, tt := range []struct {
			name          string
			stop, restore func()
		}{
			{"the agent is frozen", a.Pause, a.Resume},
			{"the link is frozen upwards", func() { a.link.Freeze(proxy.Up) }, func() { a.link.Cut(); a.link.Heal() }},
			{"the cluster is unreachable", apiProxy.Refuse, apiProxy.Heal},
			{"the link to the cluster is frozen", func() { apiProxy.Freeze(proxy.Up, proxy.Down) }, func() { apiProxy.Cut(); apiProxy.Heal() }},
		} {
			tt.stop()
			if !w.eventually(convergenceTimeout, func(ctx context.Context) bool { return len(w.staleAccounts(ctx)) > 0 }) {
				t.Errorf("%s: the API does not report any account as stale", tt.name)
			}
			tt.restore()
			w.awaitConvergence()
		}
	})
}
