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
)

// errReset interrupts an attempt because the caller gave another mark.
var errReset = errors.New("the feed was reset")

// sinkError is a sink's refusal. It ends the Watcher.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// feed is one feed at work, in one goroutine. The fields without a comment on
// who owns them belong to that goroutine.
type feed struct {
	Wanted
	w        *Watcher
	sink     Sink
	head     []byte // what items of a list lack
	mark     vedette.Mark
	told     Event // the last Status
	note     string
	tries    int   // failing resumes from the same mark by what could not be understood
	limit    int   // objects per page
	relists  int   // snapshots since a watch came to something
	begun    bool  // the snapshot under way was told
	progress bool  // the attempt under way came to something
	turn     *turn // of the snapshot under way
	hushed   bool  // the last watch said nothing for as long as Config.Silence
	retry    *backoff.ExponentialBackOff

	telling  atomic.Bool // what happens to its objects is told, sooner or later
	watching atomic.Bool // its attempt has come to the watch
	away     atomic.Bool // the API server could not be reached, or not do it, when it was last asked

	stop context.CancelFunc // ends run; set before it begins
	done chan struct{}      // closed by run
	wake chan struct{}      // try again at once; never closed

	mu     sync.Mutex
	began  time.Time               // when the attempt under way began
	cancel context.CancelCauseFunc // of the attempt under way
	reset  *vedette.Mark           // asked for, not yet taken
}

func (w *Watcher) newFeed(wanted Wanted, sink Sink, mark vedette.Mark) *feed {
	f := &feed{Wanted: wanted, w: w, sink: sink, mark: mark, head: headOf(wanted.Resource), limit: pageLimit,
		done: make(chan struct{}), wake: make(chan struct{}, 1), retry: backoff.NewExponentialBackOff()}
	f.retry.InitialInterval, f.retry.MaxInterval, f.retry.Multiplier = w.cfg.FirstRetry, w.cfg.MostRetry, 2
	f.noteTelling(vedette.FeedPending)
	return f
}

// run goes on until ctx ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	defer func() { _ = f.w.forgetStall(context.WithoutCancel(ctx), f) }() // a sink that refuses has ended the Watcher
	err := f.tell(ctx, vedette.FeedPending, "")
	for ctx.Err() == nil {
		var attempt context.Context
		if attempt, err = f.begin(ctx, err); err == nil {
			err = f.attempt(attempt)
		}
		err = f.after(attempt, err)
		f.cancel(nil)
		var refused sinkError
		if errors.As(err, &refused) && ctx.Err() == nil {
			f.w.fail(refused)
			return
		}
	}
}

// begin starts an attempt and takes up a Reset.
func (f *feed) begin(ctx context.Context, err error) (context.Context, error) {
	f.mu.Lock()
	attempt, cancel := context.WithCancelCause(ctx)
	f.cancel, f.began = cancel, time.Now()
	reset := f.reset
	f.reset = nil
	f.mu.Unlock()
	if reset == nil {
		return attempt, err
	}
	f.mark, f.tries = *reset, 0
	f.told = Event{}
	return attempt, f.tell(attempt, vedette.FeedPending, "")
}

// resetTo is Watcher.Reset for this feed.
func (f *feed) resetTo(from vedette.Mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reset = &from
	if f.cancel != nil {
		f.cancel(errReset)
	}
}

// attempt goes on from the mark until something ends it. It returns nil where
// the API server ended a watch as it should.
func (f *feed) attempt(ctx context.Context) error {
	f.progress = false
	if f.Objects != nil {
		return f.makeUp(ctx)
	}
	if f.mark == "" {
		if err := f.snapshot(ctx); err != nil {
			return err
		}
	}
	return f.watch(ctx)
}

// makeUp tells the objects of a feed that nobody serves, and waits.
func (f *feed) makeUp(ctx context.Context) error {
	if err := f.put(ctx, Event{Type: Begin}); err != nil {
		return err
	}
	for _, raw := range f.Objects {
		if err := f.put(ctx, Event{Type: Item, Raw: append([]byte(nil), raw...)}); err != nil {
			return err
		}
	}
	if err := f.put(ctx, Event{Type: End, Mark: madeUpMark}); err != nil {
		return err
	}
	if err := f.tell(ctx, vedette.FeedLive, ""); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// put hands an event to the sink.
func (f *feed) put(ctx context.Context, e Event) error {
	e.Wanted = f.Wanted
	if err := f.sink.Put(ctx, e); err != nil {
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

// tell says how the feed is, where that changed.
func (f *feed) tell(ctx context.Context, state vedette.FeedState, message string) error {
	if state == vedette.FeedLive {
		message = firstOf(message, f.note)
		if err := f.w.forgetStall(ctx, f); err != nil {
			return err
		}
	}
	if f.told.State == state && f.told.Message == message {
		return nil
	}
	f.told = Event{Type: Status, State: state, Message: message, Mark: f.mark}
	f.noteTelling(state)
	return f.put(ctx, f.told)
}

// noteTelling notes whether the feed tells its objects, as far as is known: one that
// goes on from a mark does so before the API server has answered.
func (f *feed) noteTelling(state vedette.FeedState) {
	f.telling.Store(state != vedette.FeedDenied && (state != vedette.FeedPending || f.mark != ""))
}

// path returns the URL's path of the feed's list.
func (f *feed) path() string {
	var b strings.Builder
	if f.Resource.Kind.Group == "" {
		b.WriteString("/api/")
	} else {
		b.WriteString("/apis/" + f.Resource.Kind.Group + "/")
	}
	b.WriteString(f.Resource.Version)
	if f.Namespace != "" {
		b.WriteString("/namespaces/" + f.Namespace)
	}
	b.WriteString("/" + f.Resource.Plural)
	return b.String()
}

// query returns what lists and watches of the feed have in common.
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

// rest waits for as long as a verdict says; less where the feed is woken.
func (f *feed) rest(ctx context.Context, d time.Duration) error {
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
