package convergence

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/proxy"
)

// Single faults, with what exactly each may cost. Bounds on time are those of
// the guarantees, where these have one.

// on runs a test on databases, in a world that has converged.
func on(t *testing.T, names []string, s shape, test func(t *testing.T, w *world)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, makers[name](t), s)
			load := &workload{cluster: w.clusters[0], rng: rand.New(rand.NewPCG(1, 1)), calm: true}
			if err := load.prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.settle()
			test(t, w)
		})
	}
}

// lone is one agent with one account, pair two agents that share it.
var (
	lone = shape{clusters: 1, accounts: []int{0}, agents: [][]int{{0}}, outbox: "8MiB", grace: "10m"}
	pair = shape{clusters: 1, accounts: []int{0}, agents: [][]int{{0}, {0}}, outbox: "8MiB", grace: "10m"}
)

// change makes an object in the first cluster and waits until it is stored.
func (w *world) change(name string) {
	w.t.Helper()
	o := configMap.make(rand.New(rand.NewPCG(2, 2)), name)
	if err := w.clusters[0].Create(w.t.Context(), configMap.list(namespaces[0]), o); err != nil {
		w.t.Fatal(err)
	}
	if !w.within(patience, func(ctx context.Context) bool {
		return w.count(ctx, `SELECT COUNT(*) FROM objects WHERE name = '`+name+`'`) > 0
	}) {
		w.t.Fatalf("%s is not stored after %v", name, patience)
	}
}

// count returns a query's one number, and -1 while the database does not answer.
func (w *world) count(ctx context.Context, query string) (n int64) {
	n = -1
	_ = w.each(ctx, query, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n
}

// holder is the agent that the first account is given to, and nil while it is
// given to none.
func (w *world) holder(ctx context.Context) (a *agent, term int64) {
	_ = w.each(ctx, `SELECT holder, term FROM accounts WHERE name = 'account-0'`, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id, &term)
		for _, each := range w.agents {
			if each.id == id {
				a = each
			}
		}
		return err
	})
	return a, term
}

// heldBy waits until an agent has the account in a later term.
func (w *world) heldBy(a *agent, after int64, bound time.Duration) (took time.Duration, ok bool) {
	w.t.Helper()
	began := time.Now()
	ok = w.within(bound, func(ctx context.Context) bool {
		is, term := w.holder(ctx)
		return is == a && term > after
	})
	return time.Since(began), ok
}

// signOfOthers are lists that every start costs: of the names of namespaces, for
// the registration, and of what makes custom kinds come and go, which belongs to
// no feed and has no mark.
var signOfOthers = map[string]bool{
	"list /api/v1/namespaces?limit=500":                          true,
	"list /apis/apiregistration.k8s.io/v1/apiservices?limit=500": true,
}

func TestAgentRestartResumes(t *testing.T) {
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		before := len(c.requests(w, a.id))
		a.kill()
		a.start()
		w.change("after")
		w.settle()
		for _, r := range lists(c.requests(w, a.id)[before:]) {
			if !signOfOthers[r] {
				t.Errorf("the agent had marks to go on from, and asked: %s", r)
			}
		}
	})
}

// A lost connection to the server is no reason to ask the API server anything.
func TestLinkCutCostsNoRequest(t *testing.T) {
	lose := map[string]func(p *proxy.Proxy){"cut": (*proxy.Proxy).Cut, "stranded": (*proxy.Proxy).Strand}
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		for _, name := range slices.Sorted(maps.Keys(lose)) {
			_, term := w.holder(t.Context())
			before := len(c.requests(w, a.id))
			lose[name](a.link)
			if _, ok := w.heldBy(a, term, patience); !ok {
				t.Fatalf("the agent did not come back after its link was %s", name)
			}
			w.change("after-" + name)
			w.settle()
			for _, r := range c.requests(w, a.id)[before:] {
				t.Errorf("the link was %s, and the agent asked the API server: %s", name, r)
			}
		}
	})
}

func TestServerRestartCostsNoRequest(t *testing.T) {
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		before := len(c.requests(w, a.id))
		w.server.kill()
		w.server.start()
		w.change("after")
		w.settle()
		for _, r := range c.requests(w, a.id)[before:] {
			t.Errorf("the server was restarted, and the agent asked the API server: %s", r)
		}
	})
}

func TestStandbyTakesOver(t *testing.T) {
	const bound = 3 * time.Second
	on(t, anyDatabase(), pair, func(t *testing.T, w *world) {
		cacher, term := w.holder(t.Context())
		standby := w.other(cacher)
		cacher.kill()
		took, ok := w.heldBy(standby, term, bound)
		if !ok {
			t.Errorf("the standby has not taken over %v after its cacher was killed", bound)
		}
		t.Logf("taken over after %v", took)
		w.change("after")
		cacher.start()
		w.settle()
	})
}

// other returns the agent of a pair that is not this one.
func (w *world) other(a *agent) *agent {
	if w.agents[0] == a {
		return w.agents[1]
	}
	return w.agents[0]
}

// The server's pulse is a second. A silent side is gone after three, and both
// look once in a pulse.
func TestHalfOpenLinkIsNoticed(t *testing.T) {
	const bound = 6 * time.Second
	for _, d := range [][]proxy.Direction{{proxy.Up, proxy.Down}, {proxy.Up}, {proxy.Down}} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			on(t, anyDatabase(), pair, func(t *testing.T, w *world) {
				cacher, term := w.holder(t.Context())
				cacher.link.Freeze(d...)
				if took, ok := w.heldBy(w.other(cacher), term, bound); ok {
					t.Logf("the server noticed after %v", took)
				} else {
					t.Errorf("the server has not noticed a half-open link after %v", bound)
				}
				noticed := func(ctx context.Context) bool { return cacher.role(ctx, "account-0") != "reporting" }
				if !w.within(bound, noticed) {
					t.Errorf("the agent has not noticed a half-open link after %v", bound)
				}
				w.change("meanwhile")
				cacher.link.Cut()
				cacher.link.Heal()
				w.settle()
			})
		})
	}
}

// The bound is far below the grace period, and the link stays as good as new.
func TestStrandedLinkIsReplaced(t *testing.T) {
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		_, term := w.holder(t.Context())
		w.agents[0].link.Strand()
		took, ok := w.heldBy(w.agents[0], term, 15*time.Second)
		if !ok {
			t.Fatalf("the agent has not opened another connection after %v", took)
		}
		t.Logf("replaced after %v", took)
	})
}

// While one agent is cut off, another takes its account over, loses the cluster,
// says so, and dies. The first one goes on as if nothing had been, and must not
// leave it at the other's last words.
func TestStatesAreToldAgain(t *testing.T) {
	on(t, anyDatabase(), pair, func(t *testing.T, w *world) {
		first, term := w.holder(t.Context())
		second := w.other(first)
		first.link.Freeze(proxy.Up, proxy.Down)
		if _, ok := w.heldBy(second, term, patience); !ok {
			t.Fatal("the standby has not taken over")
		}
		w.settled(second, 0)
		second.api[w.clusters[0]].Refuse()
		w.settled(second, 1)
		second.kill()
		first.link.Cut()
		first.link.Heal()
		if _, ok := w.heldBy(first, term, patience); !ok {
			t.Fatal("the first agent has not come back")
		}
		w.settled(first, 0)
		second.api[w.clusters[0]].Heal()
		second.start()
		w.settle()
	})
}

// An agent that takes an account over, and can't reach the cluster, follows nothing
// of it: what its predecessor followed must not go on to look live.
func TestNothingIsLiveThatNobodyFollows(t *testing.T) {
	on(t, anyDatabase(), pair, func(t *testing.T, w *world) {
		first, term := w.holder(t.Context())
		second := w.other(first)
		if !w.within(patience, func(ctx context.Context) bool { return second.role(ctx, "account-0") == "standby" }) {
			t.Fatal("the second agent does not stand by")
		}
		second.api[w.clusters[0]].Refuse()
		first.link.Freeze(proxy.Up, proxy.Down)
		if _, ok := w.heldBy(second, term, patience); !ok {
			t.Fatal("the standby has not taken over")
		}
		if n := w.count(t.Context(), `SELECT COUNT(*) FROM feeds WHERE state = 'live'`); n > 0 {
			t.Errorf("%d feeds are live that nobody follows", n)
		}
		second.api[w.clusters[0]].Heal()
		w.settled(second, 0)
		first.link.Cut()
		first.link.Heal()
		w.settle()
	})
}

// settled waits until an agent's feeds are live, but for at least so many.
func (w *world) settled(a *agent, failing int64) {
	w.t.Helper()
	var n int64
	query := `SELECT COUNT(*) FROM feeds WHERE state <> 'live'`
	if !w.within(patience, func(ctx context.Context) bool {
		n = w.count(ctx, query)
		return failing == 0 && n == 0 || failing > 0 && n >= failing
	}) {
		w.t.Fatalf("with agent %s %d feeds are not live", a.id, n)
	}
}

// An API server that has just started leaves custom kinds out of its discovery for
// a moment, in which its agents ask. Users must not see their objects go.
func TestCustomObjectsOutliveAPIServer(t *testing.T) {
	const query = `SELECT COUNT(*) FROM objects o JOIN kinds k ON k.id = o.kind_id WHERE k.name = 'Widget'`
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		c, widget := w.clusters[0], custom[0]
		if err := c.Create(t.Context(), crdKind.list(""), definition(widget)); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(3, 3))
		created := func(ctx context.Context) bool {
			return c.Create(ctx, widget.list(namespaces[0]), widget.make(rng, "w")) == nil
		}
		if !w.within(patience, created) {
			t.Fatal("the custom kind is not served")
		}
		w.settle()
		ctx, stop := context.WithCancel(t.Context())
		least := make(chan int64)
		go func() { least <- w.least(ctx, query) }()
		for range 3 {
			c.KillAPIServer()
			w.agents[0].kill()
			w.agents[0].start() // it asks as soon as it is answered
			if err := c.StartAPIServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.settle()
		}
		stop()
		if n := <-least; n != 1 {
			t.Errorf("at one time %d of 1 custom objects were stored", n)
		}
	})
}

// least looks at a count until ctx ends and returns the smallest.
func (w *world) least(ctx context.Context, query string) int64 {
	least := w.count(w.t.Context(), query)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if n := w.count(ctx, query); n >= 0 {
			least = min(least, n)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return least
}

func TestForgottenAfterGrace(t *testing.T) {
	const grace = 4 * time.Second
	s := lone
	s.grace = "4s"
	on(t, anyDatabase(), s, func(t *testing.T, w *world) {
		killed := time.Now()
		w.agents[0].kill()
		gone := func(ctx context.Context) bool { return w.count(ctx, `SELECT COUNT(*) FROM accounts`) == 0 }
		if !w.within(patience, gone) {
			t.Fatalf("the account is still there %v after its only agent was killed", patience)
		}
		if after := time.Since(killed); after < grace {
			t.Errorf("the account was removed after %v, before the grace period of %v ended", after, grace)
		}
		for _, table := range []string{"objects", "feeds", "labelsets", "labels"} {
			if n := w.count(t.Context(), "SELECT COUNT(*) FROM "+table); n != 0 {
				t.Errorf("%d rows of %s outlived the account", n, table)
			}
		}
		w.agents[0].start()
		w.settle()
	})
}

// The last agent goes while the database is away, so that nobody can note when.
func TestForgottenThoughDatabaseWasAway(t *testing.T) {
	s := lone
	s.grace = "4s"
	on(t, everyDatabase(), s, func(t *testing.T, w *world) {
		if w.db.kill == nil {
			w.db.kill, w.db.start = w.db.disk.fill, w.db.disk.free
		}
		w.db.kill()
		w.agents[0].kill()
		idle(t.Context(), 15*time.Second) // the server tries for ten
		w.db.start()
		gone := func(ctx context.Context) bool { return w.count(ctx, `SELECT COUNT(*) FROM accounts`) == 0 }
		if !w.within(patience, gone) {
			t.Errorf("the account is still there %v after the database came back", patience)
		}
	})
}

func TestKeptWithinGrace(t *testing.T) {
	s := lone
	s.grace = "20s"
	on(t, anyDatabase(), s, func(t *testing.T, w *world) {
		id := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`)
		w.agents[0].kill()
		idle(t.Context(), 3*time.Second)
		w.server.kill()
		w.server.start()
		w.agents[0].start()
		w.settle()
		if now := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`); now != id {
			t.Errorf("the account was made anew: its row is %d and was %d", now, id)
		}
	})
}

// The server was stopped for longer than the grace period, as its database says by
// whichever clock, and starts long before the agent is back.
func TestKeptThroughAPlannedStop(t *testing.T) {
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		id := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`)
		w.agents[0].pause()
		w.server.stop()
		if err := w.db.write(`UPDATE accounts SET orphaned = 1, last_seen = 1, holder = '', server = ''`); err != nil {
			t.Fatal(err)
		}
		w.server.start()
		idle(t.Context(), 15*time.Second) // in which the server looks for what to remove at least once
		w.agents[0].resume()
		w.settle()
		if now := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`); now != id {
			t.Errorf("the account was made anew: its row is %d and was %d", now, id)
		}
	})
}

// A server that we don't have takes the account away: whoever has it must not
// write another change in its term, and may then ask for it again.
func TestStaleTermIsRefused(t *testing.T) {
	on(t, anyDatabase(), lone, func(t *testing.T, w *world) {
		_, term := w.holder(t.Context())
		if err := w.db.write(`UPDATE accounts SET term = term + 1, holder = 'elsewhere' WHERE name = 'account-0'`); err != nil {
			t.Fatal(err)
		}
		w.change("after")
		if _, now := w.holder(t.Context()); now < term+2 {
			t.Errorf("a change was stored in term %d, and %d was given to another; only a later one may write", now, term+1)
		}
		w.settle()
	})
}
