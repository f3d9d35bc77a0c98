package watch

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// errExpired reports that a continue token expired before the list was complete.
var errExpired = errors.New("the list took longer than the API server keeps its state; listing again")

// errClusterRolledBack reports that the cluster is at an older state than the mark.
var errClusterRolledBack = errors.New("the cluster is older than the mark of this feed, as after a restore of etcd; listing again")

func (f *feed) classify(err error) lifecycle.Failure {
	failure := classify(err)
	failure.Message = f.statusMessage(err)
	failure.IsConnLost = failure.IsUnreachable && kube.StatusCode(err) == 0 && !kube.IsInterrupted(err) // proxies often interrupt watches
	failure.IsStall = errors.As(err, new(*kube.StallError))
	return failure
}

// classify returns what the kind of an error means. It is the only place that does.
func classify(err error) lifecycle.Failure {
	var status *kube.StatusError
	switch {
	case errors.Is(err, errClusterRolledBack):
		return lifecycle.Failure{State: vedette.FeedSyncing, DropMark: true}
	case errors.Is(err, errExpired), errors.Is(err, ErrUnreadable):
		return lifecycle.Failure{State: vedette.FeedSyncing, DropMark: true}
	case errors.Is(err, kube.ErrTooManyWatches): // the others go on
		return lifecycle.Failure{State: vedette.FeedFailing, Delay: lifecycle.Backoff}
	case errors.Is(err, kube.ErrCannotWipe):
		return lifecycle.Failure{State: vedette.FeedDenied, Delay: lifecycle.LongDelay}
	case errors.As(err, &status):
		return classifyStatus(status)
	case errors.Is(err, jsonstream.ErrMalformed):
		return lifecycle.Failure{State: vedette.FeedFailing, Delay: lifecycle.Backoff, CountsAgainstMark: true}
	case kube.IsInterrupted(err): // by its content, or on the way from the API server
		return lifecycle.Failure{State: vedette.FeedFailing, Delay: lifecycle.Backoff, CountsAgainstMark: true, IsUnreachable: true}
	}
	return lifecycle.Failure{State: vedette.FeedFailing, Delay: lifecycle.Backoff, IsUnreachable: true,
		ReloadCredentials: kube.IsCertificateError(err)}
}

func classifyStatus(s *kube.StatusError) lifecycle.Failure {
	switch {
	case s.IsExpired():
		return lifecycle.Failure{State: vedette.FeedSyncing, DropMark: true}
	case s.Code == http.StatusUnauthorized:
		return lifecycle.Failure{State: vedette.FeedDenied, Delay: lifecycle.LongDelay, ReloadCredentials: true}
	case s.Code == http.StatusForbidden:
		return lifecycle.Failure{State: vedette.FeedDenied, Delay: lifecycle.LongDelay}
	case s.Code == http.StatusNotFound, s.Code == http.StatusMethodNotAllowed:
		return lifecycle.Failure{State: vedette.FeedFailing, Delay: lifecycle.Backoff, Rediscover: true}
	}
	return lifecycle.Failure{State: vedette.FeedFailing, Delay: lifecycle.Backoff, MinDelay: s.RetryAfter,
		IsUnreachable: s.Code >= http.StatusInternalServerError && s.RetryAfter == 0}
}

func (f *feed) statusMessage(err error) string {
	var status *kube.StatusError
	errors.As(err, &status)
	switch code := kube.StatusCode(err); {
	case errors.Is(err, errExpired), errors.Is(err, errClusterRolledBack), errors.Is(err, ErrUnreadable):
		return err.Error()
	case code == http.StatusGone:
		return "the mark of this feed has expired in the API server; listing again"
	case code == http.StatusNotFound && status.IsNotFound(), code == http.StatusMethodNotAllowed && status.IsStatus:
		return fmt.Sprintf("the API server no longer serves %s in version %s", f.Resource.Kind, f.Resource.Version)
	}
	return f.w.c.Explain(err).Error()
}
