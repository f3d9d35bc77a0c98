package watch

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch/evidence"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// errInterrupted is why what is under way ends if somebody wants something else of the feed.
var errInterrupted = errors.New("the feed continues in another way")

// sinkError is an error of the sink. It ends the Watcher.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// feed executes what its life decides, in one goroutine. Fields belong to that goroutine unless a
// comment or a lock says otherwise.
type feed struct {
	FeedSpec
	w        *Watcher
	sink     Sink
	typeMeta []byte          // kind and apiVersion, which the items of a list lack
	pageSize int             // objects per page
	permit   *snapshotPermit // of the current snapshot
	retry    *backoff.ExponentialBackOff
	underway lifecycle.Effect // List, Watch, Pause or Rest; nil if that was interrupted

	evidence evidence.Feed
	status   atomic.Pointer[FeedStatus] // nil before the first Status
	verified atomic.Pointer[time.Time]  // when it was verified last; nil if it was not
	putting  atomic.Bool                // the sink has not taken an event yet
	listing  atomic.Bool                // a list is requested or read, instead of waiting for a permit

	stop context.CancelFunc // ends run; set before run starts
	done chan struct{}      // closed by run
	wake chan struct{}      // try again at once; never closed

	mu        sync.Mutex
	life      *lifecycle.Feed
	interrupt context.CancelCauseFunc // ends what is under way; nil before run
	advanced  chan struct{}           // closed when the mark changes, or a snapshot has begun; nil while nobody waits
}

func (w *Watcher) newFeed(spec FeedSpec, sink Sink, mark vedette.Mark) *feed {
	f := &feed{FeedSpec: spec, w: w, sink: sink, typeMeta: typeMetaOf(spec.Resource), pageSize: defaultPageSize,
		done: make(chan struct{}), wake: make(chan struct{}, 1), retry: w.cfg.newBackoff(), life: lifecycle.New(mark)}
	if spec.Objects != nil {
		f.life = lifecycle.NewSynthetic()
	}
	f.evidence.Forget(mark)
	return f
}

// run executes effects until ctx ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	defer func() { _ = f.w.clearStall(context.WithoutCancel(ctx), f.Feed) }() // a sink that fails has ended the Watcher
	attempt := f.newAttempt(ctx)
	defer func() { f.interrupt(nil) }()
	err := f.handle(attempt, lifecycle.Started{})
	for ctx.Err() == nil {
		var sinkErr sinkError
		switch {
		case errors.As(err, &sinkErr):
			f.w.fail(sinkErr)
			return
		case attempt.Err() != nil:
			f.underway = nil
			attempt = f.newAttempt(ctx)
			err = f.handle(attempt, lifecycle.Interrupted{})
		case err != nil:
			err = f.handle(attempt, lifecycle.Failed{Failure: f.classify(err)})
		default:
			err = f.execute(attempt)
		}
	}
}

// newAttempt returns a context that ends when the feed is interrupted.
func (f *feed) newAttempt(ctx context.Context) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	attempt, cancel := context.WithCancelCause(ctx)
	f.interrupt = cancel
	return attempt
}

// execute does what is under way, and handles the event that ends it, unless that is an error.
func (f *feed) execute(ctx context.Context) error {
	switch underway := f.underway.(type) {
	case lifecycle.List:
		if f.Objects != nil {
			return f.passOnSynthetic(ctx)
		}
		return f.list(ctx)
	case lifecycle.Watch:
		return f.watch(ctx, underway)
	case lifecycle.Pause:
		if err := f.pause(ctx, f.delay(underway)); err != nil {
			return err
		}
		return f.handle(ctx, lifecycle.PauseOver{})
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// handle handles an event, and executes what follows from it except for what takes time. It returns an error if
// the sink fails, or if the feed was interrupted.
func (f *feed) handle(ctx context.Context, e lifecycle.Event) error {
	for _, effect := range f.step(e) {
		if err := f.do(ctx, effect); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// step handles an event. What it must not do too late, or twice, it does under the lock: an attempt that an event has ended must
// bring nothing more.
func (f *feed) step(e lifecycle.Event) []lifecycle.Effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, wasBeginning := f.life.Mark(), f.life.IsBeginningAnew()
	effects := f.life.Step(e, time.Now())
	if f.advanced != nil && (f.life.Mark() != before || wasBeginning && !f.life.IsBeginningAnew()) {
		close(f.advanced)
		f.advanced = nil
	}
	for _, effect := range effects {
		switch effect := effect.(type) {
		case lifecycle.Interrupt:
			f.interrupt(errInterrupted)
		case lifecycle.ForgetEvidence:
			f.evidence.Forget(effect.Mark)
		}
	}
	return effects
}

func (f *feed) do(ctx context.Context, effect lifecycle.Effect) error {
	switch effect := effect.(type) {
	case lifecycle.List, lifecycle.Watch, lifecycle.Pause, lifecycle.Rest:
		f.underway = effect
	case lifecycle.Begin:
		if err := f.put(ctx, &Event{Type: Begin, Anew: effect.Anew}); err != nil {
			return err
		}
		return f.handle(ctx, lifecycle.Begun{})
	case lifecycle.End:
		if err := f.put(ctx, &Event{Type: End, Mark: effect.Mark}); err != nil {
			return err
		}
		return f.handle(ctx, lifecycle.Taken{})
	case lifecycle.Report:
		return f.report(ctx, effect)
	case lifecycle.ReportStall:
		return f.w.setStall(ctx, f.Feed, reason{vedette.FeedFailing, f.Feed.String() + ": " + effect.Message})
	case lifecycle.ClearStall:
		return f.w.clearStall(ctx, f.Feed)
	case lifecycle.ResetBackoff:
		f.retry.Reset()
	default:
		f.tellOthers(effect)
	}
	return nil
}

// tellOthers executes an effect that does not concern the feed alone.
func (f *feed) tellOthers(effect lifecycle.Effect) {
	switch effect := effect.(type) {
	case lifecycle.Disturb:
		if effect.All {
			f.w.verifier.disturb()
		} else {
			f.w.verifier.disturb(f)
		}
	case lifecycle.RetryOthers:
		f.w.retryUnreachableFeeds()
	case lifecycle.NoteConnLost:
		f.w.noteConnLost()
	case lifecycle.ReloadCredentials:
		f.w.c.ReloadCredentials()
	case lifecycle.Rediscover:
		f.w.requestRediscovery()
	}
}

func (f *feed) report(ctx context.Context, r lifecycle.Report) error {
	f.status.Store(&FeedStatus{Feed: f.Feed, State: r.State, Message: r.Message, Since: time.Now()})
	f.w.noteDenial(f, r)
	err := f.put(ctx, &Event{Type: Status, State: r.State, Message: r.Message, Mark: r.Mark})
	if err != nil {
		f.step(lifecycle.ReportLost{})
	}
	return err
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

// mark returns the mark up to which the sink has taken everything, and how often the feed was read anew.
func (f *feed) mark() (mark vedette.Mark, snapshots int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.life.Mark(), f.life.Snapshots()
}

// waitForMark returns the mark, and a channel that is closed when it changes, or earlier.
func (f *feed) waitForMark() (mark vedette.Mark, advanced <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.life.Mark(), f.advancedLocked()
}

func (f *feed) advancedLocked() <-chan struct{} {
	if f.advanced == nil {
		f.advanced = make(chan struct{})
	}
	return f.advanced
}

// awaitBegin waits while the feed begins anew, until ctx or the feed ends.
func (f *feed) awaitBegin(ctx context.Context) {
	for advanced := f.waitForBegin(); advanced != nil; advanced = f.waitForBegin() {
		select {
		case <-advanced:
		case <-f.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// waitForBegin returns nil unless the feed begins anew, and otherwise a channel that is closed when it has begun, or earlier.
func (f *feed) waitForBegin() (advanced <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.listing.Load() || !f.life.IsBeginningAnew() {
		return nil
	}
	return f.advancedLocked()
}

// isBeginningAnew reports whether a list is requested for a snapshot that replaces what is stored, and has not begun at the sink.
func (f *feed) isBeginningAnew() bool {
	return f.listing.Load() && f.is((*lifecycle.Feed).IsBeginningAnew)
}

// is reports whether something holds for the life of the feed.
func (f *feed) is(property func(*lifecycle.Feed) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return property(f.life)
}

// isFollowing reports whether the feed has reached its watch.
func (f *feed) isFollowing() bool { return f.is((*lifecycle.Feed).IsFollowing) }

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

// delay returns how long a pause lasts.
func (f *feed) delay(p lifecycle.Pause) time.Duration {
	if p.Delay == lifecycle.LongDelay {
		return randomDuration(f.w.cfg.MinDeniedBackoff, f.w.cfg.MaxDeniedBackoff)
	}
	return max(p.MinDelay, f.retry.NextBackOff())
}

// pause waits for d, or less if the feed is woken.
func (f *feed) pause(ctx context.Context, d time.Duration) error {
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
