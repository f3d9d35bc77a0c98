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
)

// Watcher follows the feeds of one account. It holds a goroutine per feed, two
// for what custom kinds there are, and Run.
type Watcher struct {
	c         *Cluster
	selection Selection
	sink      Sink
	cfg       Config
	turns     chan struct{} // of this account
	slowTurn  chan struct{} // of this account, while its API server is slow
	slow      atomic.Bool   // the API server kept a snapshot waiting
	stalls    stalls
	nudges    chan struct{} // discovery may have changed
	back      chan struct{} // the API server answers again
	found     chan struct{} // closed by Run when it has asked for the first time what there is, or has ended
	// streamless are API groups that do not stream snapshots.
	streamless sync.Map
	fail       context.CancelCauseFunc // ends Run; set by it

	mu     sync.Mutex
	feeds  map[vedette.Feed]*feed
	roused time.Time // when isBack last roused feeds
	lost   time.Time // when a connection to the API server was last found lost

	// Owned by Run:
	declared []Wanted
	unknown  []string
	signals  map[vedette.Kind]*feed
	names    []string             // of the selection that mean nothing, as last logged
	missing  map[vedette.Feed]int // how often discovery has left out feeds that were there
	looks    int                  // the most of these of a feed in doubt, or else of one that was just believed to be gone
}

// NewWatcher prepares a Watcher. Run starts it.
func NewWatcher(c *Cluster, s Selection, sink Sink, cfg Config) *Watcher {
	cfg = cfg.withDefaults()
	return &Watcher{c: c, selection: s, sink: sink, cfg: cfg, turns: make(chan struct{}, cfg.PerAccount), slowTurn: make(chan struct{}, 1), stalls: stalls{feeds: map[vedette.Feed]bool{}},
		nudges: make(chan struct{}, 1), back: make(chan struct{}, 1), found: make(chan struct{}), feeds: map[vedette.Feed]*feed{}, signals: map[vedette.Kind]*feed{}}
}

// Run watches until ctx ends or the sink refuses, and returns once all of its
// goroutines have. Feeds with a mark go on from there; the others begin with a
// snapshot. It is called once.
func (w *Watcher) Run(ctx context.Context, marks map[vedette.Feed]vedette.Mark) error {
	ctx, w.fail = context.WithCancelCause(ctx)
	defer w.stopAll()
	found := sync.OnceFunc(func() { close(w.found) })
	defer found()
	if marks = maps.Clone(marks); marks == nil {
		marks = map[vedette.Feed]vedette.Mark{}
	}
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval, retry.Multiplier = w.cfg.FirstRetry, w.cfg.MostRetry, 2
	followUps, away := 0, false
	for ctx.Err() == nil {
		changed, err := w.rediscover(ctx, marks)
		found()
		if away && err == nil {
			w.isBack()
		}
		away = err != nil
		if changed {
			followUps = len(followUpPauses)
		}
		if w.looks > mostDoubts {
			followUps = min(followUps, len(followUpPauses)-1) // what is gone may still come back
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			w.discoveryFailed(ctx, err)
			w.waitBack(ctx, retryAfter(err), retry.NextBackOff())
		case w.looks > 0 && w.looks <= mostDoubts:
			retry.Reset()
			w.waitFor(ctx, w.cfg.Settle*followUpPauses[w.looks-1])
		case followUps < len(followUpPauses):
			retry.Reset()
			w.waitFor(ctx, w.cfg.Settle*followUpPauses[followUps])
			followUps++
		default:
			retry.Reset()
			if w.waitNudge(ctx) {
				followUps = 0
			}
		}
	}
	return endOf(ctx)
}

// followUpPauses, in units of Config.Settle, are when discovery is asked again
// after a custom kind changed and it did not show yet: the API server gathers
// its discovery behind the scenes.
var followUpPauses = [...]time.Duration{2, 5, 15}

// endOf returns why a Watcher ended: the sink's words, or nothing but that the
// caller wanted it to.
func endOf(ctx context.Context) error {
	var refused sinkError
	if cause := context.Cause(ctx); errors.As(cause, &refused) {
		return refused.error
	}
	return ctx.Err()
}

func retryAfter(err error) time.Duration {
	var status *statusError
	if errors.As(err, &status) {
		return status.RetryAfter
	}
	return 0
}

// waitFor waits for a time.
func (w *Watcher) waitFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// waitBack waits for a time, less where the API server answers somebody before, and
// at least for as long as it asked for.
func (w *Watcher) waitBack(ctx context.Context, least, d time.Duration) {
	w.waitFor(ctx, least)
	timer := time.NewTimer(max(0, d-least))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.back:
	case <-ctx.Done():
	}
}

// isBack says that the API server answers a feed that it did not answer before. All
// that it did not answer are tried again at once: by then each of them may be waiting
// for half a minute. A server that comes and goes does not shorten their pauses more
// than once in the shortest of these.
func (w *Watcher) isBack() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.roused) < w.cfg.FirstRetry {
		return
	}
	w.roused = time.Now()
	for _, f := range w.feeds {
		if f.away.Load() {
			f.rouse()
		} else {
			f.reopen(w.lost)
		}
	}
	select {
	case w.back <- struct{}{}:
	default:
	}
}

// waitNudge waits until discovery should be asked again. After a nudge it waits
// a little longer, since custom kinds come in crowds, and reports true.
func (w *Watcher) waitNudge(ctx context.Context) bool {
	timer := time.NewTimer(between(w.cfg.Rediscover*9/10, w.cfg.Rediscover*11/10))
	defer timer.Stop()
	select {
	case <-w.nudges:
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
	w.waitFor(ctx, w.cfg.Settle)
	select {
	case <-w.nudges:
	default:
	}
	return true
}

// nudged says that discovery may have changed. It never blocks.
func (w *Watcher) nudged() {
	select {
	case w.nudges <- struct{}{}:
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
	f.resetTo(from)
	return true
}

// Wants reports whether one of the feeds tells an object as it is given (see
// Selection.Wants), and what will become of it: one that the API server denies
// does not. It is safe for use by many at once. At the start it waits until the feeds
// are known, for a second at most.
func (w *Watcher) Wants(r vedette.Resource, o *vedette.Object) bool {
	w.awaitFeeds()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.feeds {
		if f.telling.Load() && f.tells(r, o) {
			return true
		}
	}
	return false
}

// mostFinding is what an operation's result may wait for discovery, which takes some
// milliseconds of an API server that answers.
const mostFinding = time.Second

// awaitFeeds waits until it is known which feeds there are: the first operation on an
// account may come as soon as the account itself.
func (w *Watcher) awaitFeeds() {
	timer := time.NewTimer(mostFinding)
	defer timer.Stop()
	select {
	case <-w.found:
	case <-timer.C:
	}
}

// discoveryFailed tells that the account as a whole can't be read.
func (w *Watcher) discoveryFailed(ctx context.Context, err error) {
	if codeOf(err) == http.StatusUnauthorized || distrusted(err) {
		w.c.renew()
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
	wanted, names := w.selection.Feeds(cat)
	if !slices.Equal(names, w.names) {
		w.names = names
		if len(names) > 0 {
			w.cfg.Log.Warn("kinds are configured that the cluster does not serve", "cluster", w.c.Host(), "kinds", names)
		}
	}
	cat.UnknownGroups = slices.Compact(slices.Sorted(slices.Values(append(w.doubt(wanted, marks), cat.UnknownGroups...))))
	wanted = w.keepUnknown(wanted, cat.UnknownGroups)
	w.signal(ctx, cat, wanted)
	if w.declared != nil && sameFeeds(wanted, w.declared) && slices.Equal(cat.UnknownGroups, w.unknown) {
		return false, nil
	}
	w.stopOthers(wanted, marks)
	w.declared, w.unknown = append([]Wanted{}, wanted...), cat.UnknownGroups
	if err := w.sink.Put(ctx, Event{Type: Declare, Feeds: wanted, UnknownGroups: cat.UnknownGroups}); err != nil {
		if ctx.Err() == nil {
			w.fail(sinkError{err})
		}
		return false, err
	}
	w.startMissing(ctx, wanted, marks)
	return true, nil
}
