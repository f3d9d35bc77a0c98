package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/evidence"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// Freshness is up to when an account is known to be complete.
type Freshness struct {
	// Live is the time up to which all live feeds are complete; zero if that is unknown.
	Live time.Time
	// All is the same for all feeds, except for those that the cluster denies and those that were never
	// complete; zero if it is unknown.
	All time.Time
}

// Freshness returns up to when the account is complete, as far as that was proven. Nothing is known before the first
// discovery: the database may have feeds that are old. It is safe for concurrent use.
func (w *Watcher) Freshness(now time.Time) Freshness {
	account := w.lastProof()
	live, all := oldest{now: now}, oldest{now: now}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.hasFeeds {
		return Freshness{}
	}
	for _, f := range w.feeds {
		state := vedette.FeedPending
		if status := f.status.Load(); status != nil {
			state = status.State
		}
		if state == vedette.FeedDenied || f.Objects != nil {
			continue
		}
		until := f.evidence.CompleteUntil(account, now)
		isLive := state == vedette.FeedLive
		if isLive {
			live.add(until)
		}
		if isLive || f.evidence.WasComplete() {
			all.add(until)
		}
	}
	return Freshness{Live: live.time(), All: all.time()}
}

// oldest finds the oldest of some times.
type oldest struct {
	now     time.Time // if there are none
	found   time.Time
	unknown bool
}

func (o *oldest) add(t time.Time) {
	switch {
	case t.IsZero():
		o.unknown = true
	case o.found.IsZero() || t.Before(o.found):
		o.found = t
	}
}

// time returns the oldest, or zero if one is unknown.
func (o *oldest) time() time.Time {
	switch {
	case o.unknown:
		return time.Time{}
	case o.found.IsZero():
		return o.now
	}
	return o.found
}

// prover probes the connections of an account's watches.
type prover struct {
	mu        sync.Mutex
	last      kube.Proof // over any connection
	isFresh   bool       // Freshness.Live was known
	isProbed  bool       // ProbeAny waits for its answer
	isDoubted bool       // the last probe has failed
	isWarned  bool       // that nothing proves anything
}

func (w *Watcher) lastProof() kube.Proof {
	w.prover.mu.Lock()
	defer w.prover.mu.Unlock()
	return w.prover.last
}

// minProofPause is the shortest pause between two rounds of probes. Each watch that opens asks for one.
const minProofPause = 200 * time.Millisecond

// proveFeeds probes each connection with watches at intervals, until ctx ends, and soon after a watch was
// opened: until then nobody knows whether it is up to date.
func (w *Watcher) proveFeeds(ctx context.Context) {
	var probes sync.WaitGroup
	defer probes.Wait()
	timer := time.NewTimer(randomDuration(0, w.cfg.ProofInterval()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C: // nobody has asked
		case <-w.proofWanted:
			w.sleep(ctx, minProofPause) // others may open with it
		case spread := <-w.proofDue:
			w.sleep(ctx, randomDuration(0, spread*4/5))
		}
		w.probeFeeds(ctx, &probes)
		timer.Reset(w.cfg.ProofInterval() * 5 / 4)
	}
}

// Prove probes all connections with watches within a time, so that Freshness is as late as possible then. It does not
// wait.
func (w *Watcher) Prove(within time.Duration) {
	select {
	case w.proofDue <- within:
	default:
	}
}

func (w *Watcher) wantProof() {
	select {
	case w.proofWanted <- struct{}{}:
	default:
	}
}

// probeFeeds begins the probes that do not wait for an answer already.
func (w *Watcher) probeFeeds(ctx context.Context, probes *sync.WaitGroup) {
	conns, hasOwn := w.carriers()
	for conn, feeds := range conns {
		if conn.BeginProbe() {
			for _, f := range feeds {
				f.evidence.Probing(conn, time.Now())
			}
			probes.Go(func() {
				err := w.c.Probe(ctx, conn, w.provingPaths)
				if ctx.Err() == nil {
					w.noteProbe(conn.LastProof(), err)
				}
			})
		}
	}
	if len(conns) == 0 && hasOwn && w.beginAnyProbe() {
		probes.Go(func() {
			proof, err := w.c.ProbeAny(ctx, w.provingPaths)
			w.endAnyProbe()
			if ctx.Err() == nil {
				w.noteProbe(proof, err)
			}
		})
	}
}

// carriers returns the connections that carry watches, with the feeds of these, and whether a watch has a connection of its own.
func (w *Watcher) carriers() (conns map[*kube.Conn][]*feed, hasOwn bool) {
	conns = map[*kube.Conn][]*feed{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.feeds {
		switch conn, isOpen := f.evidence.Carrier(); {
		case conn != nil:
			conns[conn] = append(conns[conn], f)
		case isOpen:
			hasOwn = true
		}
	}
	return conns, hasOwn
}

func (w *Watcher) beginAnyProbe() bool {
	w.prover.mu.Lock()
	defer w.prover.mu.Unlock()
	begins := !w.prover.isProbed
	w.prover.isProbed = true
	return begins
}

func (w *Watcher) endAnyProbe() {
	w.prover.mu.Lock()
	defer w.prover.mu.Unlock()
	w.prover.isProbed = false
}

// noteProbe notes the end of a probe. When one is answered after another has failed, watches with
// connections of their own begin anew: whatever the cause was, it may have broken these too, and no
// probe shows that.
func (w *Watcher) noteProbe(proof kube.Proof, err error) {
	w.prover.mu.Lock()
	wasDoubted := w.prover.isDoubted
	w.prover.isDoubted = err != nil
	isUnproven := errors.Is(err, kube.ErrUnproven)
	warns := isUnproven && !w.prover.isWarned
	w.prover.isWarned = isUnproven || w.prover.isWarned && err != nil
	isFresh := w.prover.isFresh
	if err == nil && !wasDoubted && proof.Sent.After(w.prover.last.Sent) {
		w.prover.last = proof
	}
	w.prover.mu.Unlock()
	if err == nil && wasDoubted {
		w.restartOwnWatches()
	}
	if warns {
		w.cfg.Log.Warn("freshness of the account is unknown", "cluster", w.c.Host(), "error", err)
	}
	time.AfterFunc(2*evidence.ReaderDelay, w.reportFresh)
	if !isFresh {
		time.AfterFunc(2*evidence.ReaderDelay+evidence.BacklogPause, w.reportFresh) // with the watches that have brought their backlog
	}
}

// maxProvingPaths is how many lists are tried at a time.
const maxProvingPaths = 3

// provingPaths returns the paths of lists that the account may read, the best ones for a proof first. None are of Secrets, whose
// metadata may hold their data.
func (w *Watcher) provingPaths() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var candidates []*feed
	for _, f := range w.feeds {
		status := f.status.Load()
		if f.Objects == nil && f.Kind != secretKind && (status == nil || status.State != vedette.FeedDenied) {
			candidates = append(candidates, f)
		}
	}
	slices.SortFunc(candidates, func(a, b *feed) int {
		return cmp.Or(cmp.Compare(provingRank(a.Kind), provingRank(b.Kind)), cmp.Compare(a.ListPath(), b.ListPath()))
	})
	var paths []string
	for _, f := range candidates[:min(len(candidates), maxProvingPaths)] {
		paths = append(paths, f.ListPath())
	}
	return paths
}

// provingRank orders kinds by what the answer to a list shows. Kinds of Kubernetes are in the API server's own etcd, and Events perhaps in
// another one. Custom kinds may be served by another API server.
func provingRank(kind vedette.Kind) int {
	switch {
	case kind.Name == "Event":
		return 3
	case !vedette.IsNativeGroup(kind.Group):
		return 2
	case kind.Name == "ConfigMap": // each may have a MiB, which etcd would read
		return 1
	}
	return 0
}

// reportFresh calls Config.OnFresh if Freshness has become known.
func (w *Watcher) reportFresh() {
	isFresh := !w.Freshness(time.Now()).Live.IsZero()
	w.prover.mu.Lock()
	becameFresh := isFresh && !w.prover.isFresh
	w.prover.isFresh = isFresh
	w.prover.mu.Unlock()
	if becameFresh && w.cfg.OnFresh != nil {
		w.cfg.OnFresh()
	}
}

// restartOwnWatches makes the watches with connections of their own continue from their marks with new
// requests.
func (w *Watcher) restartOwnWatches() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.feeds {
		if conn, isOpen := f.evidence.Carrier(); isOpen && conn == nil {
			f.step(lifecycle.ReconnectWanted{})
		}
	}
}
