package watch

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// Watcher follows the feeds of one account. It holds a goroutine per feed, two
// for what custom kinds there are, and Run.
type Watcher struct {
	c                  *kube.Cluster
	selection          Selection
	sink               Sink
	cfg                Config
	permits            chan struct{} // of this account
	slowPermit         chan struct{} // of this account, while its API server is slow
	slow               atomic.Bool   // the API server kept a snapshot waiting
	stalls             stalls
	rediscoverRequests chan struct{} // discovery may have changed
	reachable          chan struct{} // the API server answers again
	feedsKnown         chan struct{} // closed by Run when it has asked for the first time what there is, or has ended
	// noWatchList are API groups that do not stream snapshots.
	noWatchList sync.Map
	fail        context.CancelCauseFunc // ends Run; set by it

	mu            sync.Mutex
	feeds         map[vedette.Feed]*feed
	lastRetriedAt time.Time // when retryUnreachableFeeds last roused feeds
	connLostAt    time.Time // when a connection to the API server was last found lost

	// Owned by Run:
	declared      []FeedSpec
	unknown       []string
	triggerFeeds  map[vedette.Kind]*feed
	unservedKinds []string             // of the selection that mean nothing, as last logged
	missing       map[vedette.Feed]int // how often discovery has left out feeds that were there
	rechecks      int                  // the most of these of a feed in doubt, or else of one that was just believed to be gone
}

// NewWatcher prepares a Watcher. Run starts it.
func NewWatcher(c *kube.Cluster, s Selection, sink Sink, cfg Config) *Watcher {
	cfg = cfg.withDefaults()
	return &Watcher{c: c, selection: s, sink: sink, cfg: cfg, permits: make(chan struct{}, cfg.SnapshotsPerAccount), slowPermit: make(chan struct{}, 1), stalls: stalls{feeds: map[vedette.Feed]bool{}},
		rediscoverRequests: make(chan struct{}, 1), reachable: make(chan struct{}, 1), feedsKnown: make(chan struct{}), feeds: map[vedette.Feed]*feed{}, triggerFeeds: map[vedette.Kind]*feed{}}
}

// Run watches until ctx ends or the sink refuses, and returns once all of its
// goroutines have. Feeds with a mark go on from there; the others begin with a
// snapshot. It is called once.
func (w *Watcher) Run(ctx context.Context, marks map[vedette.Feed]vedette.Mark) error {
	ctx, w.fail = context.WithCancelCause(ctx)
	defer w.stopAll()
	markFeedsKnown := sync.OnceFunc(func() { close(w.feedsKnown) })
	defer markFeedsKnown()
	if marks = maps.Clone(marks); marks == nil {
		marks = map[vedette.Feed]vedette.Mark{}
	}
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval, retry.Multiplier = w.cfg.MinBackoff, w.cfg.MaxBackoff, 2
	followUps, unreachable := 0, false
	for ctx.Err() == nil {
		changed, err := w.rediscover(ctx, marks)
		markFeedsKnown()
		if unreachable && err == nil {
			w.retryUnreachableFeeds()
		}
		unreachable = err != nil
		if changed {
			followUps = len(followUpPauses)
		}
		if w.rechecks > maxRechecks {
			followUps = min(followUps, len(followUpPauses)-1) // what is gone may still come back
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			w.discoveryFailed(ctx, err)
			w.waitReachable(ctx, retryAfter(err), retry.NextBackOff())
		case w.rechecks > 0 && w.rechecks <= maxRechecks:
			retry.Reset()
			w.sleep(ctx, w.cfg.SettleDelay*followUpPauses[w.rechecks-1])
		case followUps < len(followUpPauses):
			retry.Reset()
			w.sleep(ctx, w.cfg.SettleDelay*followUpPauses[followUps])
			followUps++
		default:
			retry.Reset()
			if w.waitForRediscovery(ctx) {
				followUps = 0
			}
		}
	}
	return runError(ctx)
}

// followUpPauses, in units of Config.Settle, are when discovery is asked again
// after a custom kind changed and it did not show yet: the API server gathers
// its discovery behind the scenes.
var followUpPauses = [...]time.Duration{2, 5, 15}

// runError returns why a Watcher ended: the sink's words, or nothing but that the
// caller wanted it to.
func runError(ctx context.Context) error {
	var sinkErr sinkError
	if cause := context.Cause(ctx); errors.As(cause, &sinkErr) {
		return sinkErr.error
	}
	return ctx.Err()
}

func retryAfter(err error) time.Duration {
	var status *kube.StatusError
	if errors.As(err, &status) {
		return status.RetryAfter
	}
	return 0
}

// sleep waits for a time.
func (w *Watcher) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// waitReachable waits for a time, less where the API server answers somebody before, and
// at least for as long as it asked for.
func (w *Watcher) waitReachable(ctx context.Context, shortest, d time.Duration) {
	w.sleep(ctx, shortest)
	timer := time.NewTimer(max(0, d-shortest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.reachable:
	case <-ctx.Done():
	}
}

// retryUnreachableFeeds says that the API server answers a feed that it did not answer before. All
// that it did not answer are tried again at once: by then each of them may be waiting
// for half a minute. A server that comes and goes does not shorten their pauses more
// than once in the shortest of these.
func (w *Watcher) retryUnreachableFeeds() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.lastRetriedAt) < w.cfg.MinBackoff {
		return
	}
	w.lastRetriedAt = time.Now()
	for _, f := range w.feeds {
		if f.unreachable.Load() {
			f.retryNow()
		} else {
			f.reconnectIfStale(w.connLostAt)
		}
	}
	select {
	case w.reachable <- struct{}{}:
	default:
	}
}

// waitForRediscovery waits until discovery should be asked again. After a nudge it waits
// a little longer, since custom kinds come in crowds, and reports true.
func (w *Watcher) waitForRediscovery(ctx context.Context) bool {
	timer := time.NewTimer(randomDuration(w.cfg.RediscoverInterval*9/10, w.cfg.RediscoverInterval*11/10))
	defer timer.Stop()
	select {
	case <-w.rediscoverRequests:
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
	w.sleep(ctx, w.cfg.SettleDelay)
	select {
	case <-w.rediscoverRequests:
	default:
	}
	return true
}

// requestRediscovery says that discovery may have changed. It never blocks.
func (w *Watcher) requestRediscovery() {
	select {
	case w.rediscoverRequests <- struct{}{}:
	default:
	}
}

// Reset interrupts a feed and lets it go on from a mark, or with a snapshot
// where the mark is empty. It does not wait. The next Status pending of the feed
// divides what was before from what comes after. It reports false where the feed
// is not watched.
func (w *Watcher) Reset(name vedette.Feed, from vedette.Mark) bool {
	w.mu.Lock()
	f := w.feeds[name]
	w.mu.Unlock()
	if f == nil {
		return false
	}
	f.requestReset(from)
	return true
}

// Covers reports whether one of the feeds tells an object as it is given (see
// Selection.Wants), and what will become of it: one that the API server denies
// does not. It is safe for use by many at once. At the start it waits until the feeds
// are known, for a second at most.
func (w *Watcher) Covers(r vedette.Resource, o *vedette.Object) bool {
	w.waitForFeeds()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.feeds {
		if f.publishes.Load() && f.covers(r, o) {
			return true
		}
	}
	return false
}

// feedsKnownTimeout is what an operation's result may wait for discovery, which takes some
// milliseconds of an API server that answers.
const feedsKnownTimeout = time.Second

// waitForFeeds waits until it is known which feeds there are: the first operation on an
// account may come as soon as the account itself.
func (w *Watcher) waitForFeeds() {
	timer := time.NewTimer(feedsKnownTimeout)
	defer timer.Stop()
	select {
	case <-w.feedsKnown:
	case <-timer.C:
	}
}

// discoveryFailed tells that the account as a whole can't be read.
func (w *Watcher) discoveryFailed(ctx context.Context, err error) {
	if kube.StatusCode(err) == http.StatusUnauthorized || kube.IsCertificateError(err) {
		w.c.ReloadCredentials()
	}
	state := vedette.FeedFailing
	if vedette.KindOf(err) == vedette.Denied {
		state = vedette.FeedDenied
	}
	w.cfg.Log.Warn("discovery failed", "cluster", w.c.Host(), "error", err)
	if len(w.declared) > 0 {
		return // the feeds tell for themselves
	}
	if err := w.sink.Put(ctx, Event{Type: Status, State: state, Message: err.Error()}); err != nil && ctx.Err() == nil {
		w.fail(sinkError{err})
	}
}

// rediscover asks what there is, and starts and stops feeds. It reports whether
// anything changed. Marks are taken by the feeds that they belong to.
func (w *Watcher) rediscover(ctx context.Context, marks map[vedette.Feed]vedette.Mark) (changed bool, err error) {
	cat, err := w.c.Discover(ctx)
	if err != nil {
		return false, err
	}
	specs, unserved := w.selection.Feeds(cat)
	if !slices.Equal(unserved, w.unservedKinds) {
		w.unservedKinds = unserved
		if len(unserved) > 0 {
			w.cfg.Log.Warn("kinds are configured that the cluster does not serve", "cluster", w.c.Host(), "kinds", unserved)
		}
	}
	cat.UnknownGroups = slices.Compact(slices.Sorted(slices.Values(append(w.suspectMissing(specs, marks), cat.UnknownGroups...))))
	specs = w.keepUnknownGroups(specs, cat.UnknownGroups)
	w.syncTriggerFeeds(ctx, cat, specs)
	if w.declared != nil && sameSpecs(specs, w.declared) && slices.Equal(cat.UnknownGroups, w.unknown) {
		return false, nil
	}
	w.stopUnwanted(specs, marks)
	w.declared, w.unknown = append([]FeedSpec{}, specs...), cat.UnknownGroups
	if err := w.sink.Put(ctx, Event{Type: Declare, Feeds: specs, UnknownGroups: cat.UnknownGroups}); err != nil {
		if ctx.Err() == nil {
			w.fail(sinkError{err})
		}
		return false, err
	}
	w.startMissing(ctx, specs, marks)
	return true, nil
}
