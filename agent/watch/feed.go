package watch

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
)

// errReset interrupts an attempt because the caller set another mark.
var errReset = errors.New("the feed was reset")

// sinkError is an error of the sink. It ends the Watcher.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// feed is a running feed with one goroutine. Fields belong to that goroutine unless a
// comment or a lock says otherwise.
type feed struct {
	FeedSpec
	w             *Watcher
	sink          Sink
	typeMeta      []byte // kind and apiVersion, which the items of a list lack
	mark          vedette.Mark
	lastStatus    Event // the last Status
	warning       string
	failedResumes int             // failed resumes from the same mark because of a malformed response
	pageSize      int             // objects per page
	relists       int             // snapshots since a watch made progress
	snapshotBegun bool            // the Begin of the current snapshot was sent
	anew          bool            // the next snapshot replaces what is stored, whatever versions it has
	madeProgress  bool            // the current attempt made progress
	permit        *snapshotPermit // of the current snapshot
	wasIdle       bool            // the last watch was silent for Config.IdleTimeout
	retry         *backoff.ExponentialBackOff

	status      atomic.Pointer[FeedStatus] // nil before the first Status
	progress    progress
	verified    atomic.Pointer[time.Time] // when it was verified last; nil if it was not
	putting     atomic.Bool               // the sink has not taken an event yet
	publishes   atomic.Bool               // the feed reports changes of its objects, sooner or later
	watching    atomic.Bool               // the current attempt has reached the watch
	unreachable atomic.Bool               // the last request did not reach the API server, or failed in it

	stop context.CancelFunc // ends run; set before run starts
	done chan struct{}      // closed by run
	wake chan struct{}      // try again at once; never closed

	mu           sync.Mutex
	attemptStart time.Time               // when the current attempt began
	cancel       context.CancelCauseFunc // of the current attempt
	reset        *vedette.Mark           // requested, not yet applied
	settle       bool                    // the feed is to be read anew; not yet applied
}

func (w *Watcher) newFeed(spec FeedSpec, sink Sink, mark vedette.Mark) *feed {
	f := &feed{FeedSpec: spec, w: w, sink: sink, mark: mark, typeMeta: typeMetaOf(spec.Resource), pageSize: defaultPageSize,
		done: make(chan struct{}), wake: make(chan struct{}, 1), retry: backoff.NewExponentialBackOff()}
	f.retry.InitialInterval, f.retry.MaxInterval, f.retry.Multiplier = w.cfg.MinBackoff, w.cfg.MaxBackoff, 2
	f.progress.advance(mark)
	f.updatePublishes(vedette.FeedPending)
	return f
}

// run repeats attempts until ctx ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	defer func() { _ = f.w.clearStall(context.WithoutCancel(ctx), f.Feed) }() // a sink that fails has ended the Watcher
	err := f.reportStatus(ctx, vedette.FeedPending, "")
	for ctx.Err() == nil {
		var attempt context.Context
		attempt, err = f.beginAttempt(ctx, err)
		if err == nil {
			err = f.runAttempt(attempt)
		}
		err = f.handleAttemptEnd(attempt, err)
		f.cancel(nil)
		var sinkErr sinkError
		if errors.As(err, &sinkErr) && ctx.Err() == nil {
			f.w.fail(sinkErr)
			return
		}
	}
}

// beginAttempt starts an attempt and applies a Reset.
func (f *feed) beginAttempt(ctx context.Context, err error) (context.Context, error) {
	f.mu.Lock()
	attempt, cancel := context.WithCancelCause(ctx)
	f.cancel, f.attemptStart = cancel, time.Now()
	reset, settle := f.reset, f.settle
	f.reset, f.settle = nil, false
	f.mu.Unlock()
	if settle {
		f.mark, f.anew = "", true
	}
	if reset == nil {
		return attempt, err
	}
	f.mark, f.failedResumes = *reset, 0
	f.progress.restart()
	f.progress.advance(f.mark)
	f.lastStatus = Event{}
	return attempt, f.reportStatus(attempt, vedette.FeedPending, "")
}

// requestReset implements Watcher.Reset.
func (f *feed) requestReset(from vedette.Mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reset = &from
	if f.cancel != nil {
		f.cancel(errReset)
	}
}

// requestSettle makes the feed be read anew, because what is stored differs from the cluster. A
// snapshot that runs is completed first.
func (f *feed) requestSettle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle = true
	if f.watching.Load() && f.cancel != nil {
		f.cancel(errSettle)
	}
}

func (f *feed) isSettleRequested() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.settle
}

// runAttempt continues from the mark until something ends it. It returns nil if the API
// server ended a watch as planned.
func (f *feed) runAttempt(ctx context.Context) error {
	f.madeProgress = false
	if f.Objects != nil {
		return f.publishSynthetic(ctx)
	}
	if f.mark == "" {
		if err := retryYielded(ctx, f.readSnapshot); err != nil {
			return err
		}
	}
	return f.watch(ctx)
}

// publishSynthetic reports the objects of a feed that no API server serves, and waits.
func (f *feed) publishSynthetic(ctx context.Context) error {
	if err := f.put(ctx, &Event{Type: Begin}); err != nil {
		return err
	}
	for _, raw := range f.Objects {
		if err := f.put(ctx, &Event{Type: Item, Raw: append([]byte(nil), raw...)}); err != nil {
			return err
		}
	}
	if err := f.put(ctx, &Event{Type: End, Mark: syntheticMark}); err != nil {
		return err
	}
	if err := f.reportStatus(ctx, vedette.FeedLive, ""); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// put passes an event of the feed to the sink. It gets a pointer because it runs on the stacks of
// thousands of goroutines: an Event has 360 bytes.
func (f *feed) put(ctx context.Context, e *Event) error {
	e.FeedSpec = f.FeedSpec
	f.putting.Store(true)
	defer f.putting.Store(false)
	if err := f.sink.Put(ctx, *e); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, ErrUnreadable) {
			return err
		}
		return sinkError{err}
	}
	return nil
}

// reportStatus reports the state of the feed if it has changed.
func (f *feed) reportStatus(ctx context.Context, state vedette.FeedState, message string) error {
	if state == vedette.FeedLive {
		message = cmp.Or(message, f.warning)
		if err := f.w.clearStall(ctx, f.Feed); err != nil {
			return err
		}
	}
	if f.lastStatus.State == state && f.lastStatus.Message == message {
		return nil
	}
	f.lastStatus = Event{Type: Status, State: state, Message: message, Mark: f.mark}
	f.status.Store(&FeedStatus{Feed: f.Feed, State: state, Message: message, Since: time.Now()})
	f.updatePublishes(state)
	f.w.noteDenial(f, f.lastStatus)
	return f.put(ctx, &f.lastStatus)
}

// updatePublishes records whether the feed reports its objects, as far as is known. A feed
// with a mark counts as reporting before the API server has responded.
func (f *feed) updatePublishes(state vedette.FeedState) {
	f.publishes.Store(state != vedette.FeedDenied && (state != vedette.FeedPending || f.mark != ""))
}

// query returns the query parameters that lists and watches of the feed share.
func (f *feed) query() url.Values {
	field := "metadata.namespace!="
	if f.Kind == namespaceKind {
		field = "metadata.name!="
	}
	var omit []string
	for _, namespace := range f.Omit {
		omit = append(omit, field+namespace)
	}
	q := url.Values{}
	if len(omit) > 0 {
		q.Set("fieldSelector", strings.Join(omit, ","))
	}
	return q
}

// sleep waits for d, or less if the feed is woken.
func (f *feed) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.wake:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
