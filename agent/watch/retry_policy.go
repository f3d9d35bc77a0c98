package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/agent/kube"
)

// errEmptyWatch says that a watch ended at once and told nothing.
var errEmptyWatch = errors.New("the watch was closed as soon as it was opened, as some proxies do")

// errExpired says that a list took longer than the API server remembers.
var errExpired = errors.New("the list took longer than the API server keeps its state; it begins again")

// errClusterRolledBack says that the cluster is at an older state than our mark.
var errClusterRolledBack = errors.New("the cluster is behind the mark of this feed, as after its etcd was restored")

// retryDelay is how soon a feed is tried again.
type retryDelay int

const (
	delayNone    retryDelay = iota
	delayBackoff            // with a pause that doubles
	delayLong               // in minutes
)

// retryPolicy is what follows from a failure.
type retryPolicy struct {
	state             vedette.FeedState
	dropMark          bool // the mark is of no use: snapshot
	delay             retryDelay
	minDelay          time.Duration // of the pause
	countFailure      bool          // another failing resume from the same mark
	rediscover        bool
	reloadCredentials bool // read credentials again
	unreachable       bool // it is the API server's trouble, or that of the way to it, and not this feed's
}

// maxFailedResumes is after how many failing resumes a mark is forgotten.
const maxFailedResumes = 3

// classify decides what follows from an error. It is the one table of this.
func classify(err error) retryPolicy {
	var status *kube.StatusError
	switch {
	case errors.Is(err, errClusterRolledBack):
		return retryPolicy{state: vedette.FeedSyncing, dropMark: true}
	case errors.Is(err, errExpired), errors.Is(err, ErrUnreadable):
		return retryPolicy{state: vedette.FeedSyncing, dropMark: true}
	case errors.Is(err, kube.ErrCannotWipe):
		return retryPolicy{state: vedette.FeedDenied, delay: delayLong}
	case errors.As(err, &status):
		return classifyStatus(status)
	case errors.Is(err, jsonstream.ErrMalformed):
		return retryPolicy{state: vedette.FeedFailing, delay: delayBackoff, countFailure: true}
	case kube.IsInterrupted(err): // by what is in it, or by the way to the API server
		return retryPolicy{state: vedette.FeedFailing, delay: delayBackoff, countFailure: true, unreachable: true}
	}
	return retryPolicy{state: vedette.FeedFailing, delay: delayBackoff, reloadCredentials: kube.IsCertificateError(err), unreachable: true}
}

func classifyStatus(s *kube.StatusError) retryPolicy {
	switch {
	case s.IsExpired():
		return retryPolicy{state: vedette.FeedSyncing, dropMark: true}
	case s.Code == http.StatusUnauthorized:
		return retryPolicy{state: vedette.FeedDenied, delay: delayLong, reloadCredentials: true}
	case s.Code == http.StatusForbidden:
		return retryPolicy{state: vedette.FeedDenied, delay: delayLong}
	case s.Code == http.StatusNotFound, s.Code == http.StatusMethodNotAllowed:
		return retryPolicy{state: vedette.FeedFailing, delay: delayBackoff, rediscover: true}
	}
	return retryPolicy{state: vedette.FeedFailing, delay: delayBackoff, minDelay: s.RetryAfter, unreachable: s.Code >= http.StatusInternalServerError && s.RetryAfter == 0}
}

// handleAttemptEnd acts on how an attempt ended: it tells, forgets, waits.
func (f *feed) handleAttemptEnd(ctx context.Context, err error) error {
	var sinkErr sinkError
	if errors.As(err, &sinkErr) || ctx.Err() != nil {
		return sinkErrorOnly(err)
	}
	if f.madeProgress {
		if f.relists <= 1 {
			f.retry.Reset()
		}
		f.failedResumes = 0
	}
	if err == nil {
		return nil
	}
	policy := f.adjustPolicy(classify(err))
	f.unreachable.Store(policy.unreachable)
	if policy.unreachable && kube.StatusCode(err) == 0 && !kube.IsInterrupted(err) { // proxies break watches off by the minute
		f.w.noteConnLost()
	}
	if policy.reloadCredentials {
		f.w.c.ReloadCredentials()
	}
	if policy.rediscover {
		f.w.requestRediscovery()
	}
	if err := f.w.noteStall(ctx, f, err); err != nil {
		return sinkErrorOnly(err)
	}
	if err := f.reportStatus(ctx, policy.state, f.statusMessage(err)); err != nil {
		return sinkErrorOnly(err)
	}
	return sinkErrorOnly(f.sleep(ctx, f.delayFor(policy)))
}

// sinkErrorOnly takes a reset for no error: it is taken up by the next attempt.
func sinkErrorOnly(err error) error {
	var sinkErr sinkError
	if errors.As(err, &sinkErr) {
		return err
	}
	return nil
}

// adjustPolicy adds what came before to a verdict. A mark that is forgotten twice
// without any progress is not asked for without a pause, nor is a list after a list
// that no watch could go on from.
func (f *feed) adjustPolicy(v retryPolicy) retryPolicy {
	if v.countFailure && f.mark != "" {
		f.failedResumes++
		v.dropMark = f.failedResumes >= maxFailedResumes
	}
	if v.reloadCredentials && f.lastStatus.State != vedette.FeedDenied {
		v.delay = delayBackoff // once, with what is in the files now
	}
	if v.dropMark {
		if f.mark == "" && !f.madeProgress || f.relists > 1 {
			v.delay = delayBackoff
		}
		f.mark, f.failedResumes = "", 0
	}
	return v
}

func (f *feed) delayFor(v retryPolicy) time.Duration {
	switch v.delay {
	case delayBackoff:
		return max(v.minDelay, f.retry.NextBackOff())
	case delayLong:
		return randomDuration(f.w.cfg.MinDeniedBackoff, f.w.cfg.MaxDeniedBackoff)
	}
	return 0
}

// statusMessage are what a Status says of a failure.
func (f *feed) statusMessage(err error) string {
	switch code := kube.StatusCode(err); {
	case errors.Is(err, errExpired), errors.Is(err, errClusterRolledBack), errors.Is(err, errEmptyWatch), errors.Is(err, errIdleWatch),
		errors.Is(err, ErrUnreadable):
		return err.Error()
	case code == http.StatusGone:
		return "the API server no longer knows the mark of this feed; it is listed again"
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		return fmt.Sprintf("the API server no longer serves %s in version %s", f.Resource.Kind, f.Resource.Version)
	}
	return f.w.c.Explain(err).Error()
}
