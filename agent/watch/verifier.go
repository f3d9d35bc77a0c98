package watch

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
	"github.com/vedette-io/vedette/agent/watch/verify"
)

const (
	// maxVerifications is how many feeds of an account are verified at the same time. They wait
	// most of the time.
	maxVerifications = 8
	// maxExaminations is how many feeds of all accounts are examined at the same time, because an
	// examination may take 400 KiB.
	maxExaminations = 64
	// permitInterval is how often a verification asks for a permit that others have.
	permitInterval = time.Second
	// compareTimeout is how long the server may take to answer. It is busy if it takes longer.
	compareTimeout = 2 * time.Minute
	// restoreCheckInterval is how often the account is checked for a restore of etcd after disturbances,
	// however long verifications wait.
	restoreCheckInterval = 10 * time.Second
)

// verifier verifies the feeds of an account in turns. It begins no list with a permit that first syncs of any
// account wait for.
type verifier struct {
	w        *Watcher
	interval time.Duration
	comparer Comparer
	wake     chan struct{} // a turn has changed; holds one token

	mu      sync.Mutex
	turns   map[*feed]*feedTurn
	running int

	// suspectRestore means that there was a disturbance after which etcd may have been restored.
	suspectRestore   bool
	nextRestoreCheck time.Time
	restoredAt       time.Time // when a restore was last noticed
	warnedAt         time.Time // when it was last logged that a feed is overdue
}

// feedTurn is the turn of one feed and what is known from its earlier verifications. Its fields are guarded by
// verifier.mu unless a comment says otherwise.
type feedTurn struct {
	*verify.Turn
	running bool
	after   int // the feed is not verified before it was read anew more often than that
	// restores is how often all feeds were read anew since this one was verified, because of its version,
	// and restored whether that is to be reported.
	restores int
	restored bool
	verified time.Time // when the feed was verified last, or was added

	// Owned by the verification that runs:
	settled    *verify.Drift   // why the feed was read anew last; nil if nothing of that is to be reported
	settles    int             // how often the feed was read anew since it was verified, or since maxSettles was reached
	settledAt  time.Time       // when it was read anew last
	suspects   verify.Suspects // of a verification that has to go on; since a snapshot, suspectsOf
	suspectsOf int
	report     VerifyReport    // what else is to be reported
	leftOut    map[uint64]bool // digests of objects that cannot be stored, at most maxLeftOut
}

// maxLeftOut bounds leftOut.
const maxLeftOut = 1000

func newVerifier(w *Watcher) *verifier {
	return &verifier{w: w, interval: w.cfg.VerifyInterval, comparer: w.cfg.Comparer, wake: make(chan struct{}, 1),
		turns: map[*feed]*feedTurn{}}
}

// start starts the verifier, and returns a function that ends it and waits.
func (v *verifier) start(ctx context.Context) (stop func()) {
	if v.comparer == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (v *verifier) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for ctx.Err() == nil {
		for _, f := range v.nextRestoreSuspects(time.Now()) {
			group.Go(func() { v.checkRestored(ctx, f) })
		}
		f, t, pause := v.next(time.Now())
		if f != nil {
			group.Go(func() { v.verify(ctx, f, t) })
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-v.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// add adds a feed that begins to be watched.
func (v *verifier) add(f *feed) {
	if v.comparer == nil || f.isTrigger {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	mark, _ := f.mark()
	v.turns[f] = &feedTurn{Turn: verify.NewTurn(time.Now(), v.interval, mark != ""), leftOut: map[uint64]bool{}, after: -1,
		verified: time.Now()}
	if mark != "" && !v.suspectRestore { // etcd may have been restored while nobody watched
		v.suspectRestore, v.nextRestoreCheck = true, time.Now().Add(restoreCheckInterval) // by then all feeds are watched
	}
	v.notify()
}

// remove forgets a feed that has ended.
func (v *verifier) remove(f *feed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.turns, f)
}

func (v *verifier) notify() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// disturb notes that something happened after which feeds may differ from the cluster. Without an
// argument, that concerns all of them.
func (v *verifier) disturb(feeds ...*feed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	v.suspectRestore = v.suspectRestore || len(feeds) == 0
	for f, t := range v.turns {
		if len(feeds) == 0 || feeds[0] == f {
			t.Disturb(now)
		}
	}
	v.notify()
}

// next returns the feed whose turn is due, or how long to wait. A feed that is not watched, for example
// because it is read anew, keeps its turn until it is.
func (v *verifier) next(now time.Time) (*feed, *feedTurn, time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.running >= maxVerifications {
		return nil, nil, v.pauseLocked(now) // the end of one wakes us
	}
	var first *feed
	pause := v.pauseLocked(now)
	for f, t := range v.turns {
		if t.running {
			continue
		}
		if wait := t.Due.Sub(now); wait > 0 {
			pause = min(pause, wait)
			continue
		}
		if _, snapshots := f.mark(); snapshots <= t.after || !f.isVerifiable() {
			continue // it notifies the verifier when it is watched
		}
		if first == nil || cmp.Compare(t.Due.UnixNano(), v.turns[first].Due.UnixNano()) < 0 {
			first = f
		}
	}
	if first == nil {
		return nil, nil, pause
	}
	t := v.turns[first]
	t.running = true
	t.Begin(now)
	v.running++
	return first, t, 0
}

// pauseLocked returns how long there is nothing to do besides turns.
func (v *verifier) pauseLocked(now time.Time) time.Duration {
	if v.suspectRestore {
		return max(time.Second, v.nextRestoreCheck.Sub(now))
	}
	return time.Hour
}

// nextRestoreSuspects returns the feeds to verify now to find out whether etcd was restored. It returns none
// if no check is due. The feeds are those that are ahead of the others, because the cluster reaches their marks last: one of
// all, and one of those that are certainly in the main etcd, because others may count on their own and be ahead.
func (v *verifier) nextRestoreSuspects(now time.Time) (suspects []*feed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.suspectRestore || now.Before(v.nextRestoreCheck) {
		return nil
	}
	ahead := v.aheadLocked(func(*feed) bool { return true })
	if ahead == nil {
		return nil
	}
	v.suspectRestore, v.nextRestoreCheck = false, now.Add(restoreCheckInterval)
	if core := v.aheadLocked((*feed).isInMainEtcd); core != nil && core != ahead {
		return []*feed{ahead, core}
	}
	return []*feed{ahead}
}

// isInMainEtcd reports whether the objects of a feed are in the etcd of the cluster. Events are often kept in one
// of their own, and so are kinds of aggregated API servers.
func (f *feed) isInMainEtcd() bool { return f.Kind.Group == "" && f.Kind.Name != "Event" }

// aheadLocked returns the watched feed that has the highest mark of those that are eligible; nil for none. A mark
// that is not a number shows nothing.
func (v *verifier) aheadLocked(isEligible func(*feed) bool) (ahead *feed) {
	highest := vedette.Mark("0")
	for f := range v.turns {
		if mark, _ := f.mark(); isEligible(f) && f.isFollowing() && isOlder(highest, mark) {
			ahead, highest = f, mark
		}
	}
	return ahead
}

// checkRestored checks whether etcd was restored to a state before the mark of a feed. That costs one
// request, so it does not wait for the turns of verifications.
func (v *verifier) checkRestored(ctx context.Context, f *feed) {
	r := verification{v: v, f: f, turn: &feedTurn{}, began: time.Now()}
	_, r.snapshots = f.mark()
	restored, err := r.isRestored(ctx)
	if restored {
		_ = v.restored(f, r.began) // a verification of the feed says so too
	}
	if err != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.suspectRestore = true
	}
}

// isVerifiable reports whether a feed follows its cluster. One that is derived from the configuration
// always equals it.
func (f *feed) isVerifiable() bool { return f.isFollowing() || f.Objects != nil }

// verify verifies a feed. An error is not the feed's: it is verified again soon.
func (v *verifier) verify(ctx context.Context, f *feed, t *feedTurn) {
	r := verification{v: v, f: f, turn: t, began: time.Now()}
	_, r.snapshots = f.mark()
	err := r.run(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.notify()
	v.running--
	t.running = false
	switch {
	case errors.Is(err, errDrift):
		t.after = max(t.after, r.snapshots)
		t.Repeat(time.Now())
		return
	case err == nil:
		now := time.Now()
		f.verified.Store(&now)
		t.restores, t.verified = 0, now
	case ctx.Err() == nil:
		v.logFailureLocked(f, t, err)
	}
	if t.after < r.snapshots { // otherwise a restore was noticed meanwhile, and the feed is verified again when it was read anew
		t.End(time.Now(), err == nil || errors.Is(err, ErrNotVerifiable))
	}
}

// overdueIntervals is after how many intervals without a verification a feed is overdue.
const overdueIntervals = 3

// logFailureLocked logs why a feed was not verified. A feed that is overdue is worth a warning, because drift of it is
// not found; once in an interval, because whatever prevents it often concerns all feeds of an account.
func (v *verifier) logFailureLocked(f *feed, t *feedTurn, err error) {
	now := time.Now()
	if errors.Is(err, ErrNotVerifiable) || now.Sub(t.verified) < overdueIntervals*v.interval || now.Sub(v.warnedAt) < v.interval {
		v.w.cfg.Log.Debug("cannot verify a feed, retrying", "feed", f.Feed.String(), "error", err)
		return
	}
	v.warnedAt = now
	v.w.cfg.Log.Warn("a feed was not verified for long, so it may differ from its cluster unnoticed; retrying", "cluster", v.w.c.Host(),
		"feed", f.Feed.String(), "since", t.verified, "error", err)
}

// takeRestored reports whether the feed was read anew because of a restore, once.
func (v *verifier) takeRestored(t *feedTurn) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := t.restored
	t.restored = false
	return was
}

// VerifyAll makes all feeds be compared with the cluster soon. It does not wait. Callers use it
// after an event that feeds do not notice themselves, for example if the cluster may be another one.
func (w *Watcher) VerifyAll() { w.verifier.disturb() }

// restored makes all feeds be read anew, because etcd was restored: what was read since the backup may
// have other content under the same resourceVersion. It was noticed by a verification of a feed that began then. If it
// is noticed again although everything was read anew, the API server's versions contradict each other, as those of
// several aggregated API servers that count on their own. Then it returns errNotSettled, so that the
// verification is repeated like others that fail.
func (v *verifier) restored(f *feed, began time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if began.Before(v.restoredAt) {
		return errDrift // another feed has noticed it
	}
	if t := v.turns[f]; t != nil {
		if t.restores >= maxSettles {
			return errNotSettled
		}
		t.restores++
	}
	v.w.cfg.Log.Warn("the cluster was restored to an earlier state, reading all of its objects anew", "cluster", v.w.c.Host())
	v.restoredAt = now
	v.w.requestRediscovery() // definitions may have come back or be gone
	for f, t := range v.turns {
		if f.Objects != nil {
			continue
		}
		_, snapshots := f.mark()
		t.restored, t.after = true, snapshots
		t.Repeat(now)
		f.step(lifecycle.AnewWanted{})
	}
	v.notify()
	return errDrift
}

// lastVerified is when the feed was verified last; zero if it was not.
func (f *feed) lastVerified() time.Time {
	if at := f.verified.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
