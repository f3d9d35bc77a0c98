package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
)

// errShort says that a watch ended at once and told nothing.
var errShort = errors.New("the watch was closed as soon as it was opened, as some proxies do")

// errExpired says that a list took longer than the API server remembers.
var errExpired = errors.New("the list took longer than the API server keeps its state; it begins again")

// errBackwards says that the cluster is at an older state than our mark.
var errBackwards = errors.New("the cluster is behind the mark of this feed, as after its etcd was restored")

// pace is how soon a feed is tried again.
type pace int

const (
	atOnce pace = iota
	soon        // with a pause that doubles
	rarely      // in minutes
)

// verdict is what follows from a failure.
type verdict struct {
	state      vedette.FeedState
	forget     bool // the mark is of no use: snapshot
	pace       pace
	least      time.Duration // of the pause
	count      bool          // another failing resume from the same mark
	rediscover bool
	renew      bool // read credentials again
	away       bool // it is the API server's trouble, or that of the way to it, and not this feed's
}

// mostTries is after how many failing resumes a mark is forgotten.
const mostTries = 3

// judge decides what follows from an error. It is the one table of this.
func judge(err error) verdict {
	var status *statusError
	switch {
	case errors.Is(err, errBackwards):
		return verdict{state: vedette.FeedSyncing, forget: true}
	case errors.Is(err, errExpired), errors.Is(err, ErrUnreadable):
		return verdict{state: vedette.FeedSyncing, forget: true}
	case errors.Is(err, errCannotWipe):
		return verdict{state: vedette.FeedDenied, pace: rarely}
	case errors.As(err, &status):
		return judgeStatus(status)
	case errors.Is(err, errGarbage):
		return verdict{state: vedette.FeedFailing, pace: soon, count: true}
	case brokenOff(err): // by what is in it, or by the way to the API server
		return verdict{state: vedette.FeedFailing, pace: soon, count: true, away: true}
	}
	return verdict{state: vedette.FeedFailing, pace: soon, renew: distrusted(err), away: true}
}

func judgeStatus(s *statusError) verdict {
	switch {
	case s.gone():
		return verdict{state: vedette.FeedSyncing, forget: true}
	case s.Code == http.StatusUnauthorized:
		return verdict{state: vedette.FeedDenied, pace: rarely, renew: true}
	case s.Code == http.StatusForbidden:
		return verdict{state: vedette.FeedDenied, pace: rarely}
	case s.Code == http.StatusNotFound, s.Code == http.StatusMethodNotAllowed:
		return verdict{state: vedette.FeedFailing, pace: soon, rediscover: true}
	}
	return verdict{state: vedette.FeedFailing, pace: soon, least: s.RetryAfter, away: s.Code >= http.StatusInternalServerError && s.RetryAfter == 0}
}

// after acts on how an attempt ended: it tells, forgets, waits.
func (f *feed) after(ctx context.Context, err error) error {
	var refused sinkError
	if errors.As(err, &refused) || ctx.Err() != nil {
		return dropReset(err)
	}
	if f.progress {
		if f.relists <= 1 {
			f.retry.Reset()
		}
		f.tries = 0
	}
	if err == nil {
		return nil
	}
	v := f.weigh(judge(err))
	f.away.Store(v.away)
	if v.away && codeOf(err) == 0 && !brokenOff(err) { // proxies break watches off by the minute
		f.w.noteLost()
	}
	if v.renew {
		f.w.c.renew()
	}
	if v.rediscover {
		f.w.nudged()
	}
	if err := f.w.noteStall(ctx, f, err); err != nil {
		return dropReset(err)
	}
	if err := f.tell(ctx, v.state, f.words(err)); err != nil {
		return dropReset(err)
	}
	return dropReset(f.rest(ctx, f.pause(v)))
}

// dropReset takes a reset for no error: it is taken up by the next attempt.
func dropReset(err error) error {
	var refused sinkError
	if errors.As(err, &refused) {
		return err
	}
	return nil
}

// weigh adds what came before to a verdict. A mark that is forgotten twice
// without any progress is not asked for without a pause, nor is a list after a list
// that no watch could go on from.
func (f *feed) weigh(v verdict) verdict {
	if v.count && f.mark != "" {
		f.tries++
		v.forget = f.tries >= mostTries
	}
	if v.renew && f.told.State != vedette.FeedDenied {
		v.pace = soon // once, with what is in the files now
	}
	if v.forget {
		if f.mark == "" && !f.progress || f.relists > 1 {
			v.pace = soon
		}
		f.mark, f.tries = "", 0
	}
	return v
}

func (f *feed) pause(v verdict) time.Duration {
	switch v.pace {
	case soon:
		return max(v.least, f.retry.NextBackOff())
	case rarely:
		return between(f.w.cfg.LeastDenied, f.w.cfg.MostDenied)
	}
	return 0
}

// words are what a Status says of a failure.
func (f *feed) words(err error) string {
	switch code := codeOf(err); {
	case errors.Is(err, errExpired), errors.Is(err, errBackwards), errors.Is(err, errShort), errors.Is(err, errMute),
		errors.Is(err, ErrUnreadable):
		return err.Error()
	case code == http.StatusGone:
		return "the API server no longer knows the mark of this feed; it is listed again"
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		return fmt.Sprintf("the API server no longer serves %s in version %s", f.Resource.Kind, f.Resource.Version)
	}
	return f.w.c.explain(err).Error()
}
