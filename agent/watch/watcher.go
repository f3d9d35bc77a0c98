package watch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
	"github.com/vedette-io/vedette/agent/watch/queue"
)

// Watcher follows the feeds of one account. It has one goroutine per feed, up to two that
// watch for changes of custom kinds, and Run.
type Watcher struct {
	c                  *kube.Cluster
	selection          Selection
	sink               Sink
	cfg                Config
	queue              queue.Account // of the Limiter
	queueStatus        queueStatus
	slowPermit         chan struct{} // the slow permit of this account
	stalls             stalls
	denials            denials
	rediscoverRequests chan struct{} // discovery may have changed
	reachable          chan struct{} // the API server responds again
	feedsKnown         chan struct{} // closed by Run after the first discovery, or when Run ends
	prover             prover
	proofWanted        chan struct{}      // holds a token after a watch was opened
	proofDue           chan time.Duration // holds a time after Prove
	// noWatchList holds API groups that do not stream snapshots.
	noWatchList sync.Map
	verifier    *verifier
	fail        context.CancelCauseFunc // ends Run; set by it

	mu            sync.Mutex
	feeds         map[vedette.Feed]*feed
	hasFeeds      bool      // the first discovery has succeeded, and feeds are what it found
	lastRetriedAt time.Time // when retryUnreachableFeeds last woke feeds
	connLostAt    time.Time // when a connection to the API server was last found lost

	// Owned by Run:
	declared      []FeedSpec
	unknown       []string
	triggerFeeds  map[vedette.Kind]*feed
	unservedKinds []string             // configured kinds that are not served, as last reported
	missing       map[vedette.Feed]int // how often discovery has omitted known feeds
	problem       string               // as last declared
	discovery     discoveryStatus
	rechecks      int // the maximum of missing over suspect feeds, or else over feeds that just counted as gone
}

// NewWatcher returns a Watcher. Run starts it.
func NewWatcher(c *kube.Cluster, s Selection, sink Sink, cfg Config) *Watcher {
	cfg = cfg.withDefaults()
	w := &Watcher{c: c, selection: s, sink: sink, cfg: cfg,
		slowPermit: make(chan struct{}, 1), stalls: stalls{reasons: map[vedette.Feed]reason{}},
		rediscoverRequests: make(chan struct{}, 1), reachable: make(chan struct{}, 1), feedsKnown: make(chan struct{}),
		proofWanted: make(chan struct{}, 1), proofDue: make(chan time.Duration, 1),
		feeds: map[vedette.Feed]*feed{}, triggerFeeds: map[vedette.Kind]*feed{}}
	w.verifier = newVerifier(w)
	return w
}

// Run watches until ctx ends or the sink fails, and returns after all of its goroutines
// have. Feeds with a mark continue from there; the others begin with a snapshot. Run must
// be called only once.
func (w *Watcher) Run(ctx context.Context, marks map[vedette.Feed]vedette.Mark) error {
	ctx, w.fail = context.WithCancelCause(ctx)
	defer w.stopAll()
	defer w.denials.close()
	defer w.startProbing(ctx)()
	defer w.verifier.start(ctx)()
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
	retry := w.cfg.newBackoff()
	schedule := &discoverySchedule{settle: w.cfg.SettleDelay, interval: w.cfg.RediscoverInterval}
	unreachable := false
	for ctx.Err() == nil {
		if w.takeRediscoveryRequest() { // this discovery answers it
			schedule.request(time.Now())
		}
		schedule.begin(time.Now())
		changed, err := w.rediscover(ctx, marks)
		markFeedsKnown()
		if unreachable && err == nil {
			w.retryUnreachableFeeds()
		}
		unreachable = err != nil
		switch {
		case ctx.Err() != nil:
		case err != nil:
			schedule.failed()
			w.discoveryFailed(ctx, err)
			w.waitReachable(ctx, retryAfter(err), retry.NextBackOff())
		default:
			retry.Reset()
			schedule.succeeded(time.Now(), changed, w.rechecks)
			w.awaitDiscovery(ctx, schedule)
		}
	}
	return runError(ctx)
}

// runError returns why a Watcher ended: the error of the sink, or that of the context.
func runError(ctx context.Context) error {
	var sinkErr sinkError
	if cause := context.Cause(ctx); errors.As(cause, &sinkErr) {
		return sinkErr.error
	}
	return ctx.Err()
}

func retryAfter(err error) time.Duration {
	if status, ok := errors.AsType[*kube.StatusError](err); ok {
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
		if f.is((*lifecycle.Feed).IsUnreachable) {
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

// awaitDiscovery waits until discovery is due. Requests make it due earlier.
func (w *Watcher) awaitDiscovery(ctx context.Context, s *discoverySchedule) {
	timer := time.NewTimer(time.Until(s.due))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-w.rediscoverRequests:
			s.request(time.Now())
			timer.Reset(time.Until(s.due))
		case <-ctx.Done():
			return
		}
	}
}

// requestRediscovery requests a discovery. It never blocks.
func (w *Watcher) requestRediscovery() {
	select {
	case w.rediscoverRequests <- struct{}{}:
	default:
	}
}

func (w *Watcher) takeRediscoveryRequest() bool {
	select {
	case <-w.rediscoverRequests:
		return true
	default:
		return false
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
	f.step(lifecycle.ResetWanted{From: from})
	return true
}

// Covers reports whether one of the feeds reports an object and its future changes (see
// Selection.Covers). A feed that the API server denies does not. Before the first discovery
// it waits for up to a second. It is safe for concurrent use.
func (w *Watcher) Covers(r vedette.Resource, o *vedette.Object) bool {
	w.waitForFeeds()
	return w.anyPublishes(func(f *feed) bool { return f.covers(r, o) })
}

// Reports is Covers in whatever version of the kind the feed reads, and does not wait.
func (w *Watcher) Reports(kind vedette.Kind, o *vedette.Object) bool {
	return w.anyPublishes(func(f *feed) bool { return f.contains(kind, o) })
}

func (w *Watcher) anyPublishes(has func(*feed) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.feeds {
		if f.is((*lifecycle.Feed).Publishes) && has(f) {
			return true
		}
	}
	return false
}

// AwaitBegin waits while feeds of some kinds begin to be read anew, until ctx ends. What an operation learns of the cluster meanwhile may
// be missing in their lists; the server must get it after it has forgotten what it knew. It is safe for concurrent use.
func (w *Watcher) AwaitBegin(ctx context.Context, kinds map[vedette.Kind]bool) {
	for _, f := range w.beginningAnew(kinds) {
		f.awaitBegin(ctx)
	}
}

// IsBeginningAnew reports whether AwaitBegin would wait now.
func (w *Watcher) IsBeginningAnew(kinds map[vedette.Kind]bool) bool {
	return len(w.beginningAnew(kinds)) > 0
}

func (w *Watcher) beginningAnew(kinds map[vedette.Kind]bool) (feeds []*feed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.feeds {
		if kinds[f.Kind] && f.isBeginningAnew() {
			feeds = append(feeds, f)
		}
	}
	return feeds
}

// KnowsFeeds reports whether the first discovery has succeeded, or Run has ended.
func (w *Watcher) KnowsFeeds() bool {
	select {
	case <-w.feedsKnown:
		return true
	default:
		return false
	}
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

// rediscover runs discovery and starts and stops feeds. It reports whether anything
// changed. Feeds that start take their mark out of marks.
func (w *Watcher) rediscover(ctx context.Context, marks map[vedette.Feed]vedette.Mark) (changed bool, err error) {
	cat, err := w.c.Discover(ctx)
	if err != nil {
		return false, err
	}
	if err := w.discoverySucceeded(ctx, cat.UnknownGroups); err != nil {
		return false, err
	}
	specs, unserved := w.selection.Feeds(cat)
	cat.UnknownGroups = slices.Compact(slices.Sorted(slices.Values(append(w.suspectMissing(cat, specs, marks), cat.UnknownGroups...))))
	specs, limitProblem := w.limitFeeds(w.keepUnknownGroups(cat, specs), marks)
	w.syncTriggerFeeds(ctx, cat, specs)
	undiscovered := w.undiscoveredKinds(unserved, time.Now())
	unserved = w.confirmUnserved(unserved, cat.UnknownGroups)
	problem := joinProblems(limitProblem, describeUndiscovered(undiscovered), describeSelectionProblem(cat, unserved, len(specs)))
	if w.declared != nil && sameSpecs(specs, w.declared) && slices.Equal(cat.UnknownGroups, w.unknown) && problem == w.problem {
		return false, nil
	}
	if problem != "" && problem != w.problem {
		w.cfg.Log.Warn("the account's configuration selects what is not watched", "cluster", w.c.Host(), "problem", problem)
	}
	w.unservedKinds, w.problem = unserved, problem
	w.stopUnwanted(specs, marks)
	w.declared, w.unknown = append([]FeedSpec{}, specs...), cat.UnknownGroups
	if err := w.putStatus(ctx, Event{Type: Declare, Feeds: specs, UnknownGroups: cat.UnknownGroups, Problem: problem}); err != nil {
		return false, err
	}
	w.startMissing(ctx, specs, marks)
	return true, nil
}

// putStatus passes an event of the account to the sink. An error of the sink ends the Watcher.
func (w *Watcher) putStatus(ctx context.Context, e Event) error {
	err := w.sink.Put(ctx, e)
	if err != nil && ctx.Err() == nil {
		w.fail(sinkError{err})
	}
	return err
}
