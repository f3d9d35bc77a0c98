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

// Watcher follows the feeds of one account. It has one goroutine per feed, up to two that
// watch for changes of custom kinds, and Run.
type Watcher struct {
	c                  *kube.Cluster
	selection          Selection
	sink               Sink
	cfg                Config
	queue              accountQueue // of the Limiter
	queueStatus        queueStatus
	slowPermit         chan struct{} // the slow permit of this account
	slow               atomic.Bool   // the API server was silent during a snapshot
	stalls             stalls
	denials            denials
	rediscoverRequests chan struct{} // discovery may have changed
	reachable          chan struct{} // the API server responds again
	feedsKnown         chan struct{} // closed by Run after the first discovery, or when Run ends
	// noWatchList holds API groups that do not stream snapshots.
	noWatchList sync.Map
	fail        context.CancelCauseFunc // ends Run; set by it

	mu            sync.Mutex
	feeds         map[vedette.Feed]*feed
	lastRetriedAt time.Time // when retryUnreachableFeeds last woke feeds
	connLostAt    time.Time // when a connection to the API server was last found lost

	// Owned by Run:
	declared      []FeedSpec
	unknown       []string
	triggerFeeds  map[vedette.Kind]*feed
	unservedKinds []string             // configured kinds that are not served, as last reported
	missing       map[vedette.Feed]int // how often discovery has omitted known feeds
	lastFailure   string               // of discovery, as last logged; empty after a success
	rechecks      int                  // the maximum of missing over suspect feeds, or else over feeds that just counted as gone
}

// NewWatcher returns a Watcher. Run starts it.
func NewWatcher(c *kube.Cluster, s Selection, sink Sink, cfg Config) *Watcher {
	cfg = cfg.withDefaults()
	return &Watcher{c: c, selection: s, sink: sink, cfg: cfg,
		slowPermit: make(chan struct{}, 1), stalls: stalls{feeds: map[vedette.Feed]bool{}},
		rediscoverRequests: make(chan struct{}, 1), reachable: make(chan struct{}, 1), feedsKnown: make(chan struct{}),
		feeds: map[vedette.Feed]*feed{}, triggerFeeds: map[vedette.Kind]*feed{}}
}

// Run watches until ctx ends or the sink fails, and returns after all of its goroutines
// have. Feeds with a mark continue from there; the others begin with a snapshot. Run must
// be called only once.
func (w *Watcher) Run(ctx context.Context, marks map[vedette.Feed]vedette.Mark) error {
	ctx, w.fail = context.WithCancelCause(ctx)
	defer w.stopAll()
	defer w.denials.close()
	defer w.startProbing(ctx)()
	markFeedsKnown := sync.OnceFunc(func() { close(w.feedsKnown) })
	defer markFeedsKnown()
	if err := w.awaitGroup(ctx, len(marks) > 0); err != nil {
		w.fail(err)
		return runError(ctx)
	}
	marks = maps.Clone(marks)
	if marks == nil {
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
			followUps = min(followUps, len(followUpPauses)-1) // a missing kind may still come back
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

// followUpPauses, in units of Config.SettleDelay, are the pauses between discoveries after
// a custom kind changed. More than one is needed because the API server updates its
// discovery in the background.
var followUpPauses = [...]time.Duration{2, 5, 15}

// runError returns why a Watcher ended: the error of the sink, or that of the context.
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

// sleep waits for d or until ctx ends.
func (w *Watcher) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// waitReachable waits for d, or less if another feed reaches the API server before. It
// waits at least for the time in Retry-After.
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

// retryUnreachableFeeds retries all unreachable feeds at once, after one of them has
// reached the API server, because by then each of them may wait for half a minute. It does
// so at most once per Config.MinBackoff, so that an API server that comes and goes is not
// flooded.
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

// waitForRediscovery waits until discovery should run again, and reports whether it was
// requested. After a request it waits for Config.SettleDelay, because custom kinds are
// often created together.
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

// requestRediscovery requests a discovery. It never blocks.
func (w *Watcher) requestRediscovery() {
	select {
	case w.rediscoverRequests <- struct{}{}:
	default:
	}
}

// Reset makes a feed continue from another mark, or with a snapshot if the mark is empty.
// It does not wait: the next Status pending of the feed separates events before and after
// the reset. It returns false if the feed is not watched.
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

// Covers reports whether one of the feeds reports an object and its future changes (see
// Selection.Covers). A feed that the API server denies does not. Before the first discovery
// it waits for up to a second. It is safe for concurrent use.
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

// feedsKnownTimeout is how long the result of an operation may wait for the first
// discovery, which takes some milliseconds if the API server responds.
const feedsKnownTimeout = time.Second

// waitForFeeds waits until the feeds are known, because the first operation on an account
// may come right after the account itself.
func (w *Watcher) waitForFeeds() {
	timer := time.NewTimer(feedsKnownTimeout)
	defer timer.Stop()
	select {
	case <-w.feedsKnown:
	case <-timer.C:
	}
}

// discoveryFailed reports that the account as a whole cannot be read.
func (w *Watcher) discoveryFailed(ctx context.Context, err error) {
	if kube.StatusCode(err) == http.StatusUnauthorized || kube.IsCertificateError(err) {
		w.c.ReloadCredentials()
	}
	state := vedette.FeedFailing
	if vedette.KindOf(err) == vedette.Denied {
		state = vedette.FeedDenied
	}
	if failure := err.Error(); failure != w.lastFailure {
		w.lastFailure = failure
		w.cfg.Log.Warn("discovery failed, retrying", "cluster", w.c.Host(), "error", err)
	}
	if len(w.declared) > 0 {
		return // the feeds report their own states
	}
	if err := w.sink.Put(ctx, Event{Type: Status, State: state, Message: err.Error()}); err != nil && ctx.Err() == nil {
		w.fail(sinkError{err})
	}
}

// rediscover runs discovery and starts and stops feeds. It reports whether anything
// changed. Feeds that start take their mark out of marks.
func (w *Watcher) rediscover(ctx context.Context, marks map[vedette.Feed]vedette.Mark) (changed bool, err error) {
	cat, err := w.c.Discover(ctx)
	if err != nil {
		return false, err
	}
	w.lastFailure = ""
	specs, unserved := w.selection.Feeds(cat)
	cat.UnknownGroups = slices.Compact(slices.Sorted(slices.Values(append(w.suspectMissing(specs, marks), cat.UnknownGroups...))))
	specs = w.keepUnknownGroups(specs, cat.UnknownGroups)
	w.syncTriggerFeeds(ctx, cat, specs)
	unserved = w.confirmUnserved(unserved, cat.UnknownGroups)
	if w.declared != nil && sameSpecs(specs, w.declared) && slices.Equal(cat.UnknownGroups, w.unknown) &&
		slices.Equal(unserved, w.unservedKinds) {
		return false, nil
	}
	problem := describeSelectionProblem(cat, unserved, len(specs))
	if problem != "" && (w.declared == nil || !slices.Equal(unserved, w.unservedKinds)) {
		w.cfg.Log.Warn("the cluster does not serve everything that the account's configuration selects", "cluster", w.c.Host(), "problem", problem)
	}
	w.unservedKinds = unserved
	w.stopUnwanted(specs, marks)
	w.declared, w.unknown = append([]FeedSpec{}, specs...), cat.UnknownGroups
	if err := w.sink.Put(ctx, Event{Type: Declare, Feeds: specs, UnknownGroups: cat.UnknownGroups, Problem: problem}); err != nil {
		if ctx.Err() == nil {
			w.fail(sinkError{err})
		}
		return false, err
	}
	w.startMissing(ctx, specs, marks)
	return true, nil
}
