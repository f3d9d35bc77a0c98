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

// errEmptyWatch reports that a watch ended at once, without an event.
var errEmptyWatch = errors.New("the watch was closed as soon as it was opened, as some proxies do")

// errExpired reports that a continue token expired before the list was complete.
var errExpired = errors.New("the list took longer than the API server keeps its state; listing again")

// errClusterRolledBack reports that the cluster is at an older state than the mark.
var errClusterRolledBack = errors.New("the cluster is older than the mark of this feed, as after a restore of etcd; listing again")

// retryDelay is how soon a feed is retried.
type retryDelay int

const (
	delayNone    retryDelay = iota
	delayBackoff            // exponential
	delayLong               // minutes
)

// retryPolicy is how a feed reacts to an error.
type retryPolicy struct {
	state             vedette.FeedState
	dropMark          bool // the mark is useless: read a snapshot
	delay             retryDelay
	minDelay          time.Duration
	countFailure      bool // count a failed resume from the same mark
	rediscover        bool
	reloadCredentials bool
	unreachable       bool // the API server or the way to it failed, so that other feeds fail too
}

// maxFailedResumes is after how many failed resumes a mark is dropped.
const maxFailedResumes = 3

// classify returns the retry policy for an error. It is the only place that does.
func classify(err error) retryPolicy {
	var status *kube.StatusError
	switch {
	case errors.Is(err, errClusterRolledBack):
		return retryPolicy{state: vedette.FeedSyncing, dropMark: true}
	case errors.Is(err, errExpired), errors.Is(err, ErrUnreadable):
		return retryPolicy{state: vedette.FeedSyncing, dropMark: true}
	case errors.Is(err, kube.ErrTooManyWatches): // the others go on
		return retryPolicy{state: vedette.FeedFailing, delay: delayBackoff}
	case errors.Is(err, kube.ErrCannotWipe):
		return retryPolicy{state: vedette.FeedDenied, delay: delayLong}
	case errors.As(err, &status):
		return classifyStatus(status)
	case errors.Is(err, jsonstream.ErrMalformed):
		return retryPolicy{state: vedette.FeedFailing, delay: delayBackoff, countFailure: true}
	case kube.IsInterrupted(err): // by its content, or on the way from the API server
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
	return retryPolicy{state: vedette.FeedFailing, delay: delayBackoff, minDelay: s.RetryAfter,
		unreachable: s.Code >= http.StatusInternalServerError && s.RetryAfter == 0}
}

// handleAttemptEnd acts on the end of an attempt: it reports the state, may drop the mark,
// and waits. It returns only errors of the sink.
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
	if policy.unreachable && kube.StatusCode(err) == 0 && !kube.IsInterrupted(err) { // proxies often interrupt watches
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

// sinkErrorOnly drops all errors but those of the sink, because the next attempt applies a
// reset.
func sinkErrorOnly(err error) error {
	var sinkErr sinkError
	if errors.As(err, &sinkErr) {
		return err
	}
	return nil
}

// adjustPolicy adapts a policy to the history of the feed. A feed that drops its mark
// twice without progress, or lists again after a list from which no watch could continue,
// backs off.
func (f *feed) adjustPolicy(v retryPolicy) retryPolicy {
	if v.countFailure && f.mark != "" {
		f.failedResumes++
		v.dropMark = f.failedResumes >= maxFailedResumes
	}
	if v.reloadCredentials && f.lastStatus.State != vedette.FeedDenied {
		v.delay = delayBackoff // retry once with the reloaded credentials
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

// statusMessage returns the message of a Status about an error.
func (f *feed) statusMessage(err error) string {
	switch code := kube.StatusCode(err); {
	case errors.Is(err, errExpired), errors.Is(err, errClusterRolledBack), errors.Is(err, errEmptyWatch), errors.Is(err, errIdleWatch),
		errors.Is(err, ErrUnreadable):
		return err.Error()
	case code == http.StatusGone:
		return "the mark of this feed has expired in the API server; listing again"
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed:
		return fmt.Sprintf("the API server no longer serves %s in version %s", f.Resource.Kind, f.Resource.Version)
	}
	return f.w.c.Explain(err).Error()
}
