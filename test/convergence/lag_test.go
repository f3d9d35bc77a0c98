package convergence

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/faults"
	"github.com/vedette-io/vedette/test/proxy"
)

// loss is a way to lose a cluster. It lasts until it is healed.
type loss struct {
	name       string
	begin, end func(ctx context.Context) error
	// delay is for how long the store still learns of changes.
	delay time.Duration
	// lasts is for how long it lasts; lossDuration if it is 0.
	lasts time.Duration
	// isAlways means that it is tried without -losses, too.
	isAlways bool
	// isSilent means that nothing is shown while it lasts, because the server is what is lost.
	isSilent bool
}

func (w *world) losses() []loss {
	a, c := w.agents[0], w.clusters[0]
	api := a.api[c]
	freeze := func(p *proxy.Proxy, directions ...proxy.Direction) func(context.Context) error {
		return faults.Infallible(func() { p.Freeze(directions...) })
	}
	cutAndHeal := func(p *proxy.Proxy) func(context.Context) error {
		return faults.Infallible(func() { p.Cut(); p.Heal() })
	}
	return []loss{
		{name: "the API server's process is stopped", begin: func(context.Context) error { return c.PauseAPIServer() },
			end: func(context.Context) error { return c.ResumeAPIServer() }, lasts: 26 * time.Second}, // longer than HTTP/2's pings take
		{name: "the API server is killed", isAlways: true, begin: faults.Infallible(c.KillAPIServer), end: c.StartAPIServer},
		{name: "etcd is stopped", isAlways: true, begin: func(context.Context) error { return c.PauseEtcd() },
			end: func(context.Context) error { return c.ResumeEtcd() }},
		{name: "packets of the API server are dropped", begin: freeze(api, proxy.Up, proxy.Down), end: cutAndHeal(api)},
		{name: "the API server accepts and says nothing", begin: freeze(api, proxy.Down), end: cutAndHeal(api)},
		{name: "requests to the API server are dropped", begin: freeze(api, proxy.Up), end: cutAndHeal(api)},
		{name: "open connections to the API server are dead", isAlways: true, begin: faults.Infallible(api.Blackhole), end: cutAndHeal(api)}, // after a ping of HTTP/2, the agent opens others
		{name: "the API server refuses connections", begin: faults.Infallible(func() { api.Refuse() }), end: cutAndHeal(api)},
		{name: "the agent's process is stopped", isAlways: true, begin: faults.Infallible(a.Pause), end: faults.Infallible(a.Resume)},
		{name: "the agent is killed", begin: faults.Infallible(a.Kill), end: faults.Infallible(a.Start)},
		{name: "the link to the server is half open, upwards", begin: freeze(a.link, proxy.Up), end: cutAndHeal(a.link)},
		{name: "the link to the server is half open, downwards", isAlways: true, begin: freeze(a.link, proxy.Down), end: cutAndHeal(a.link),
			delay: 4 * time.Second}, // until the agent misses three heartbeats
		{name: "the link to the server is frozen", begin: freeze(a.link, proxy.Up, proxy.Down), end: cutAndHeal(a.link)},
		{name: "the server's process is stopped", isAlways: true, begin: faults.Infallible(w.server.Pause), end: faults.Infallible(w.server.Resume), isSilent: true},
	}
}

// lossDuration is longer than three heartbeats, and than the time after which data is stale.
const lossDuration = 10 * time.Second

// TestLagIsNeverBelowTheTruth loses a cluster in each way, or without -losses in some, and compares the lag that the API shows with the time
// for which the store cannot know what happens there. The lag may be larger, and never smaller.
func TestLagIsNeverBelowTheTruth(t *testing.T) {
	runAlone(t, anyDatabase(), singleAgent, func(t *testing.T, w *world) {
		c := w.clusters[0]
		for i, l := range w.losses() {
			if !*allLosses && !l.isAlways {
				continue
			}
			if !w.eventually(convergenceTimeout, func(ctx context.Context) bool { return len(w.staleAccounts(ctx)) == 0 }) {
				t.Fatalf("before %s: %v", l.name, w.staleAccounts(t.Context()))
			}
			healthy := w.shownLag(t.Context())
			if err := l.begin(t.Context()); err != nil {
				t.Fatalf("%s: %v", l.name, err)
			}
			lost := time.Now().Add(l.delay) // from now on the store does not learn of changes
			observed := w.observeLag(l, lost)
			if err := l.end(t.Context()); err != nil {
				t.Fatalf("%s: %v", l.name, err)
			}
			t.Logf("%-50s healthy %v, %s", l.name, healthy, observed)
			if l.isSilent {
				w.checkWokenServer(l, lost)
			}
			name := fmt.Sprintf("after-%d", i)
			if !w.eventually(convergenceTimeout, func(ctx context.Context) bool {
				return c.Create(ctx, configMap.list(namespaces[0]), configMap.make(rand.New(rand.NewPCG(4, 4)), name)) == nil
			}) {
				t.Fatalf("after %s: the API server does not answer", l.name)
			}
			w.awaitConvergence()
		}
	})
}

// lagObservation is what was shown during a loss.
type lagObservation struct {
	samples      int
	leastExcess  time.Duration // the smallest difference of a lag that was shown and the truth
	markedStale  time.Duration // when the account was first stale
	unknownLater bool          // no lag was shown
}

func (o lagObservation) String() string {
	return fmt.Sprintf("%d samples, least excess %v, stale after %v, unknown: %v", o.samples, o.leastExcess.Round(time.Millisecond),
		o.markedStale.Round(100*time.Millisecond), o.unknownLater)
}

// observeLag asks for the lag until a loss has lasted for lossDuration. It reports lags that are below the truth.
func (w *world) observeLag(l loss, lost time.Time) (o lagObservation) {
	w.t.Helper()
	o.leastExcess = time.Hour
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	duration := cmp.Or(l.lasts, lossDuration)
	for time.Since(lost) < duration {
		<-tick.C
		if l.isSilent {
			continue
		}
		asked := time.Since(lost) // the answer is computed later, so the truth is at least that
		account, err := w.account(w.t.Context())
		if err != nil {
			w.t.Errorf("%s: %v", l.name, err)
			continue
		}
		o.samples++
		if account.Stale && o.markedStale == 0 {
			o.markedStale = asked
		}
		if account.LagMs == nil {
			o.unknownLater = true
			continue
		}
		lag := time.Duration(*account.LagMs) * time.Millisecond
		if asked < 0 {
			continue
		}
		o.leastExcess = min(o.leastExcess, lag-asked)
		if lag < asked-time.Millisecond { // it is cut to milliseconds
			w.t.Errorf("%s: after %v the API shows a lag of %v", l.name, asked.Round(time.Millisecond), lag)
		}
	}
	if !l.isSilent && (o.samples == 0 || o.markedStale == 0) {
		w.t.Errorf("%s: the account is not stale after %v (%d samples)", l.name, duration, o.samples)
	}
	return o
}

// leftAfter is how long an agent sends heartbeats to a server that is stopped, and more. The server finds them when it continues.
const leftAfter = 5 * time.Second

// checkWokenServer checks the first answer of a server that was stopped: what it can have learned is what its agent sent
// before it disconnected.
func (w *world) checkWokenServer(l loss, lost time.Time) {
	w.t.Helper()
	var first accountFreshness
	if !w.eventually(time.Minute, func(ctx context.Context) (answered bool) {
		account, err := w.account(ctx)
		first = account
		return err == nil
	}) {
		w.t.Errorf("%s: it does not answer afterwards", l.name)
		return
	}
	after := time.Since(lost).Round(time.Millisecond)
	if first.LagMs == nil {
		w.t.Logf("%s: after %v the first answer shows no lag", l.name, after)
		return
	}
	shown := time.Duration(*first.LagMs) * time.Millisecond
	w.t.Logf("%s: after %v the first answer shows a lag of %v", l.name, after, shown)
	if shown < lossDuration-leftAfter {
		w.t.Errorf("%s: after %v the first answer shows a lag of %v, want at least %v", l.name, after, shown, lossDuration-leftAfter)
	}
}

func (w *world) account(ctx context.Context) (a accountFreshness, err error) {
	accounts, err := w.freshness(ctx)
	if err != nil {
		return a, err
	}
	a, ok := accounts["account-0"]
	if !ok {
		return a, fmt.Errorf("account-0 is not listed (%d are)", len(accounts))
	}
	return a, nil
}

// shownLag returns the lag that the API shows, -1 ms if none.
func (w *world) shownLag(ctx context.Context) time.Duration {
	account, err := w.account(ctx)
	if err != nil || account.LagMs == nil {
		return -time.Millisecond
	}
	return time.Duration(*account.LagMs) * time.Millisecond
}
