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

// Tests of single faults and what each may cost. Limits of time are those in docs/guarantees.md, if
// it has one.

// runOn runs a test on databases, in a world that has converged. Tests run in parallel, because they
// wait most of the time.
func runOn(t *testing.T, names []string, s topology, test func(t *testing.T, w *world)) {
	t.Parallel()
	runAlone(t, names, s, test)
}

// runAlone is runOn for a test with a limit of time, or of requests in a time, that a machine which
// is busy with other tests may exceed.
func runAlone(t *testing.T, names []string, s topology, test func(t *testing.T, w *world)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runInWorld(t, newDatabase(t, name), s, test)
		})
	}
}

// runInWorld runs a test in a world that has converged.
func runInWorld(t *testing.T, db *database, s topology, test func(t *testing.T, w *world)) {
	t.Helper()
	w := newWorld(t, db, s)
	load := &workload{cluster: w.clusters[0], rng: rand.New(rand.NewPCG(1, 1)), keepKinds: true}
	if err := load.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitConvergence()
	test(t, w)
}

// singleAgent is one agent with one account, pair is two agents that share it.
var (
	singleAgent = topology{clusters: 1, accounts: []int{0}, agents: [][]int{{0}}, outbox: "8MiB", grace: "10m"}
	twoAgents   = topology{clusters: 1, accounts: []int{0}, agents: [][]int{{0}, {0}}, outbox: "8MiB", grace: "10m"}
)

// createAndAwait creates an object in the first cluster and waits until it is stored.
func (w *world) createAndAwait(name string) {
	w.t.Helper()
	o := configMap.make(rand.New(rand.NewPCG(2, 2)), name)
	if err := w.clusters[0].Create(w.t.Context(), configMap.list(namespaces[0]), o); err != nil {
		w.t.Fatal(err)
	}
	if !w.eventually(convergenceTimeout, func(ctx context.Context) bool {
		return w.count(ctx, `SELECT COUNT(*) FROM objects WHERE name = '`+name+`'`) > 0
	}) {
		w.t.Fatalf("%s is not stored after %v", name, convergenceTimeout)
	}
}

// count returns the number that a query selects, or -1 while the database does not answer.
func (w *world) count(ctx context.Context, query string) (n int64) {
	n = -1
	_ = w.forEachRow(ctx, query, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n
}

// holder returns the agent that holds the first account, or nil.
func (w *world) holder(ctx context.Context) (a *agent, term int64) {
	_ = w.forEachRow(ctx, `SELECT holder, term FROM accounts WHERE name = 'account-0'`, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id, &term)
		for _, candidate := range w.agents {
			if candidate.id == id {
				a = candidate
			}
		}
		return err
	})
	return a, term
}

// awaitHolder waits until an agent holds the account in a term later than after.
func (w *world) awaitHolder(a *agent, after int64, timeout time.Duration) (took time.Duration, ok bool) {
	w.t.Helper()
	began := time.Now()
	ok = w.eventually(timeout, func(ctx context.Context) bool {
		current, term := w.holder(ctx)
		return current == a && term > after
	})
	return time.Since(began), ok
}

// expectedLists are the lists that every start needs: namespace names, for the registration, and
// the definitions of custom kinds, which belong to no feed and have no mark.
var expectedLists = map[string]bool{
	"list /api/v1/namespaces?limit=500":                          true,
	"list /apis/apiregistration.k8s.io/v1/apiservices?limit=500": true,
}

func TestAgentRestartResumes(t *testing.T) {
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		before := len(c.requests(w, a.id))
		a.Kill()
		a.Start()
		w.createAndAwait("after")
		w.awaitConvergence()
		for _, r := range listRequests(c.requests(w, a.id)[before:]) {
			if !expectedLists[r] {
				t.Errorf("the agent had marks to resume from, but sent: %s", r)
			}
		}
	})
}

// An agent must not send requests to the API server because its connection to the server was lost.
func TestLinkCutCausesNoAPIRequest(t *testing.T) {
	faults := map[string]func(p *proxy.Proxy){"cut": (*proxy.Proxy).Cut, "stranded": (*proxy.Proxy).Blackhole}
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		for _, name := range slices.Sorted(maps.Keys(faults)) {
			_, term := w.holder(t.Context())
			before := len(c.requests(w, a.id))
			faults[name](a.link)
			if _, ok := w.awaitHolder(a, term, convergenceTimeout); !ok {
				t.Fatalf("the agent did not reconnect after its link was %s", name)
			}
			w.createAndAwait("after-" + name)
			w.awaitConvergence()
			for _, r := range withoutPeriodic(c.requests(w, a.id)[before:]) {
				t.Errorf("after the link was %s, the agent sent to the API server: %s", name, r)
			}
		}
	})
}

func TestServerRestartCausesNoAPIRequest(t *testing.T) {
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		a, c := w.agents[0], w.clusters[0]
		before := len(c.requests(w, a.id))
		w.server.Kill()
		w.server.Start()
		w.createAndAwait("after")
		w.awaitConvergence()
		for _, r := range withoutPeriodic(c.requests(w, a.id)[before:]) {
			t.Errorf("after the server was restarted, the agent sent to the API server: %s", r)
		}
	})
}

// That this takes three seconds on a machine that is not busy is checked by package assignment.
func TestStandbyTakesOver(t *testing.T) {
	const timeout = time.Minute
	runAlone(t, anyDatabase(), twoAgents, func(t *testing.T, w *world) {
		cacher, term := w.holder(t.Context())
		standby := w.otherAgent(cacher)
		cacher.Kill()
		took, ok := w.awaitHolder(standby, term, timeout)
		if !ok {
			t.Errorf("the standby has not taken over %v after the cacher was killed", timeout)
		}
		t.Logf("took over after %v", took)
		w.createAndAwait("after")
		cacher.Start()
		w.awaitConvergence()
	})
}

// otherAgent returns the other agent of a pair.
func (w *world) otherAgent(a *agent) *agent {
	if w.agents[0] == a {
		return w.agents[1]
	}
	return w.agents[0]
}

// The server's heartbeat interval is one second. A silent side is disconnected after three. The
// limit is for a busy machine, and far below the kernel's timeout of a quarter of an hour.
func TestHalfOpenLinkIsDetected(t *testing.T) {
	const timeout = time.Minute
	runAlone(t, anyDatabase(), twoAgents, func(t *testing.T, w *world) {
		for _, d := range [][]proxy.Direction{{proxy.Up, proxy.Down}, {proxy.Up}, {proxy.Down}} {
			cacher, term := w.holder(t.Context())
			cacher.link.Freeze(d...)
			if took, ok := w.awaitHolder(w.otherAgent(cacher), term, timeout); ok {
				t.Logf("%v: the server noticed after %v", d, took)
			} else {
				t.Errorf("%v: the server has not noticed a half-open link after %v", d, timeout)
			}
			detected := func(ctx context.Context) bool { return cacher.role(ctx, "account-0") != "reporting" }
			if !w.eventually(timeout, detected) {
				t.Errorf("%v: the agent has not noticed a half-open link after %v", d, timeout)
			}
			w.createAndAwait(fmt.Sprint("meanwhile-", d[0], "-", len(d)))
			cacher.link.Cut()
			cacher.link.Heal()
			w.awaitConvergence()
		}
	})
}

// The limit is far below the grace period, and the link itself works.
func TestBlackholedLinkIsReplaced(t *testing.T) {
	runAlone(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		_, term := w.holder(t.Context())
		w.agents[0].link.Blackhole()
		took, ok := w.awaitHolder(w.agents[0], term, time.Minute)
		if !ok {
			t.Fatalf("the agent has not opened another connection after %v", took)
		}
		t.Logf("replaced after %v", took)
	})
}

// While one agent is disconnected, another takes its account over, loses the cluster, reports that,
// and dies. When the first one continues, the feeds must not keep the states that the other
// reported.
func TestFeedStatesAreSentAgainAfterTakeover(t *testing.T) {
	runOn(t, anyDatabase(), twoAgents, func(t *testing.T, w *world) {
		first, term := w.holder(t.Context())
		second := w.otherAgent(first)
		first.link.Freeze(proxy.Up, proxy.Down)
		if _, ok := w.awaitHolder(second, term, convergenceTimeout); !ok {
			t.Fatal("the standby has not taken over")
		}
		w.awaitFeeds(second, 0)
		second.api[w.clusters[0]].Refuse()
		w.awaitFeeds(second, 1)
		second.Kill()
		first.link.Cut()
		first.link.Heal()
		if _, ok := w.awaitHolder(first, term, convergenceTimeout); !ok {
			t.Fatal("the first agent has not taken over again")
		}
		w.awaitFeeds(first, 0)
		second.api[w.clusters[0]].Heal()
		second.Start()
		w.awaitConvergence()
	})
}

// An agent that takes an account over and cannot reach the cluster watches nothing, so the feeds of
// its predecessor must not stay live.
func TestUnwatchedFeedsAreNotLive(t *testing.T) {
	runOn(t, anyDatabase(), twoAgents, func(t *testing.T, w *world) {
		first, term := w.holder(t.Context())
		second := w.otherAgent(first)
		if !w.eventually(convergenceTimeout, func(ctx context.Context) bool { return second.role(ctx, "account-0") == "standby" }) {
			t.Fatal("the second agent is not a standby")
		}
		second.api[w.clusters[0]].Refuse()
		first.link.Freeze(proxy.Up, proxy.Down)
		if _, ok := w.awaitHolder(second, term, convergenceTimeout); !ok {
			t.Fatal("the standby has not taken over")
		}
		if n := w.count(t.Context(), `SELECT COUNT(*) FROM feeds f JOIN accounts a ON a.id = f.account_id WHERE f.state = 'live' AND a.resumed_term <> a.term`); n > 0 {
			t.Errorf("got %d live feeds that no agent watches", n)
		}
		second.api[w.clusters[0]].Heal()
		w.awaitFeeds(second, 0)
		first.link.Cut()
		first.link.Heal()
		w.awaitConvergence()
	})
}

// awaitFeeds waits until all feeds are live, except the given number.
func (w *world) awaitFeeds(a *agent, failing int64) {
	w.t.Helper()
	var n int64
	query := `SELECT COUNT(*) FROM feeds f JOIN accounts a ON a.id = f.account_id WHERE f.state <> 'live' OR a.resumed_term = a.term`
	if !w.eventually(convergenceTimeout, func(ctx context.Context) bool {
		n = w.count(ctx, query)
		return failing == 0 && n == 0 || failing > 0 && n >= failing
	}) {
		w.t.Fatalf("agent %s: got %d feeds that are not live", a.id, n)
	}
}

// An API server that has just started omits custom kinds from its discovery for a moment, in which
// agents discover. Their objects must not disappear.
func TestCustomObjectsSurviveAPIServerRestart(t *testing.T) {
	const query = `SELECT COUNT(*) FROM objects o JOIN kinds k ON k.id = o.kind_id WHERE k.name = 'Widget'`
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		c, widget := w.clusters[0], custom[0]
		if err := c.Create(t.Context(), crdKind.list(""), definition(widget)); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(3, 3))
		created := func(ctx context.Context) bool {
			return c.Create(ctx, widget.list(namespaces[0]), widget.make(rng, "w")) == nil
		}
		if !w.eventually(convergenceTimeout, created) {
			t.Fatal("the custom kind is not served")
		}
		w.awaitConvergence()
		ctx, stop := context.WithCancel(t.Context())
		minimum := make(chan int64)
		go func() { minimum <- w.minCount(ctx, query) }()
		for range 3 {
			c.KillAPIServer()
			w.agents[0].Kill()
			w.agents[0].Start() // it discovers as soon as the API server answers
			if err := c.StartAPIServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.awaitConvergence()
		}
		stop()
		if n := <-minimum; n != 1 {
			t.Errorf("got a minimum of %d custom objects stored, want 1", n)
		}
	})
}

// minCount polls a count until ctx ends, and returns the smallest.
func (w *world) minCount(ctx context.Context, query string) int64 {
	minimum := w.count(w.t.Context(), query)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if n := w.count(ctx, query); n >= 0 {
			minimum = min(minimum, n)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return minimum
}

func TestAccountIsRemovedAfterGracePeriod(t *testing.T) {
	const grace = 4 * time.Second
	s := singleAgent
	s.grace = "4s"
	runOn(t, anyDatabase(), s, func(t *testing.T, w *world) {
		killed := time.Now()
		w.agents[0].Kill()
		gone := func(ctx context.Context) bool { return w.count(ctx, `SELECT COUNT(*) FROM accounts`) == 0 }
		if !w.eventually(convergenceTimeout, gone) {
			t.Fatalf("the account still exists %v after its only agent was killed", convergenceTimeout)
		}
		if after := time.Since(killed); after < grace {
			t.Errorf("the account was removed after %v, before the grace period of %v ended", after, grace)
		}
		for _, table := range []string{"objects", "feeds", "labelsets", "labels"} {
			if n := w.count(t.Context(), "SELECT COUNT(*) FROM "+table); n != 0 {
				t.Errorf("got %d rows of %s after the account was removed", n, table)
			}
		}
		w.agents[0].Start()
		w.awaitConvergence()
	})
}

// The last agent exits while the database is unavailable, so that the time cannot be stored.
func TestAccountIsRemovedDespiteDatabaseOutage(t *testing.T) {
	s := singleAgent
	s.grace = "4s"
	runOn(t, everyDatabase(), s, func(t *testing.T, w *world) {
		if w.db.kill == nil {
			w.db.kill, w.db.start = w.db.disk.fill, w.db.disk.free
		}
		w.db.kill()
		w.agents[0].Kill()
		sleep(t.Context(), 15*time.Second) // the server retries for ten
		w.db.start()
		gone := func(ctx context.Context) bool { return w.count(ctx, `SELECT COUNT(*) FROM accounts`) == 0 }
		if !w.eventually(convergenceTimeout, gone) {
			t.Errorf("the account still exists %v after the database was available again", convergenceTimeout)
		}
	})
}

func TestAccountIsKeptWithinGracePeriod(t *testing.T) {
	s := singleAgent
	s.grace = "20s"
	runOn(t, anyDatabase(), s, func(t *testing.T, w *world) {
		id := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`)
		w.agents[0].Kill()
		sleep(t.Context(), 3*time.Second)
		w.server.Kill()
		w.server.Start()
		w.agents[0].Start()
		w.awaitConvergence()
		if now := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`); now != id {
			t.Errorf("the account was created again: got row %d, want %d", now, id)
		}
	})
}

// The server was stopped for longer than the grace period, according to the times in its database,
// and starts long before the agent is back.
func TestAccountIsKeptThroughServerStop(t *testing.T) {
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		id := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`)
		w.agents[0].Pause()
		w.server.Stop()
		if err := w.db.write(`UPDATE accounts SET orphaned = 1, last_seen = 1, holder = '', server = ''`); err != nil {
			t.Fatal(err)
		}
		w.server.Start()
		sleep(t.Context(), 15*time.Second) // in which the server checks for accounts to remove at least once
		w.agents[0].Resume()
		w.awaitConvergence()
		if now := w.count(t.Context(), `SELECT id FROM accounts WHERE name = 'account-0'`); now != id {
			t.Errorf("the account was created again: got row %d, want %d", now, id)
		}
	})
}

// Another server takes the account away. The agent that had it must not write another change in its
// term, and may then register it again.
func TestStaleTermIsRejected(t *testing.T) {
	runOn(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		_, term := w.holder(t.Context())
		if err := w.db.write(`UPDATE accounts SET term = term + 1, holder = 'elsewhere' WHERE name = 'account-0'`); err != nil {
			t.Fatal(err)
		}
		w.createAndAwait("after")
		if _, now := w.holder(t.Context()); now < term+2 {
			t.Errorf("a change was stored in term %d, but term %d was assigned to another agent", now, term+1)
		}
		w.awaitConvergence()
	})
}
