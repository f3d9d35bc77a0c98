package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// The media types of request bodies.
const (
	contentTypeJSON           = "application/json"
	contentTypeStrategicPatch = "application/strategic-merge-patch+json"
	contentTypeMergePatch     = "application/merge-patch+json"
	contentTypeJSONPatch      = "application/json-patch+json"
	contentTypeApplyPatch     = "application/apply-patch+yaml" // JSON is YAML too
)

// The media types that Secrets are requested in by all verbs: without their data.
const (
	acceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// request is one request to the API server.
type request struct {
	method        string
	path          string
	query         url.Values
	accept        string
	contentType   string
	body          []byte
	nonIdempotent bool // it must not be sent again if it may have taken effect
	sensitive     bool // the response may hold the data of a Secret: the caller clears it
	isManifest    bool // the body is a user's manifest, or is computed from one
	dryRun        bool // send sets it
	toCollection  bool // it is sent to the collection of the object, as creations are
	decoding      decoding
	// consume reads the body of a successful response instead of send. Nil for none.
	consume func(io.Reader) error
}

// isReadOnly reports whether a request changes nothing.
func (req request) isReadOnly() bool {
	return req.dryRun || req.method == "" || req.method == http.MethodGet
}

// withQuery returns the request with one more parameter.
func (req request) withQuery(parameter, value string) request {
	req.query = maps.Clone(req.query)
	if req.query == nil {
		req.query = url.Values{}
	}
	req.query.Set(parameter, value)
	return req
}

// send sends a request and returns the body and the status of a successful response. It retries as
// the retry policy says, until ctx ends.
func (r *run) send(ctx context.Context, req request) ([]byte, int, error) {
	if req.isManifest && r.fieldValidation != "" { // old API servers ignore it
		req = req.withQuery("fieldValidation", r.fieldValidation)
	}
	if r.dryRun && !req.isReadOnly() {
		req = req.asDryRun()
	}
	backoff := r.operator.cfg.InitialBackoff
	var lost *lostError // the last response that did not arrive, or left open what happened
	release := r.temporaryMemory()
	for attempt := 1; ; attempt++ {
		body, status, err := r.sendOnce(ctx, req)
		if err == nil && req.dryRun && status == http.StatusCreated {
			body, err = withDryRunVersion(body)
		}
		if err == nil {
			return body, status, nil
		}
		if !errors.As(err, &lost) && !req.isReadOnly() && mayHaveTakenEffect(err) {
			lost = &lostError{err: err}
		}
		if ctx.Err() != nil || isFinal(err) || !r.operator.cfg.Retry.shouldRetry(req, err, attempt) {
			return body, status, r.lost.record(lost, err)
		}
		delay := r.operator.cfg.Retry.Backoff
		if delay <= 0 {
			delay = backoff/2 + rand.N(backoff)
		}
		if !sleep(ctx, max(retryAfter(err), delay)) {
			return nil, status, r.lost.record(lost, err)
		}
		backoff = min(2*backoff, r.operator.cfg.MaxBackoff)
		release()
	}
}

func (r *run) sendOnce(ctx context.Context, req request) ([]byte, int, error) {
	resp, err := r.logged(ctx, r.operator.cluster.Do, kube.Request{
		Method: req.method, Path: req.path, Query: req.query, Accept: req.accept, ContentType: req.contentType, Body: req.body,
		WipeBuffers: req.sensitive, BeforeSend: func() error { return r.mayChange(ctx, req) }})
	r.noteSent(req, err)
	if err != nil {
		return nil, 0, req.classifySendError(ctx, err)
	}
	defer resp.Body.Close()
	r.warnings.addHeader(resp.Header)
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, resp.StatusCode, r.readStatusError(ctx, resp)
	}
	var body []byte
	if req.consume != nil {
		err = req.consume(resp.Body)
	} else {
		body, err = r.readBody(ctx, resp.Body, req.decoding)
	}
	if err != nil && req.isReadOnly() && isFinal(err) {
		return nil, resp.StatusCode, err
	}
	if err != nil && req.isReadOnly() {
		return nil, resp.StatusCode, vedette.Errorf(vedette.Unavailable, "the response of %s ended early: %w", r.operator.cluster.Host(), err)
	}
	if err != nil {
		return nil, resp.StatusCode, &lostError{err: err}
	}
	return body, resp.StatusCode, nil
}

// classifySendError returns a lostError if the request may have reached the API server.
func (req request) classifySendError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !strings.Contains(err.Error(), cause.Error()) {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	if req.isReadOnly() || !kube.MayHaveBeenSent(err) {
		return err
	}
	return &lostError{err: err}
}

// isRetryable reports whether a retry may succeed and does no harm.
func (req request) isRetryable(err error) bool {
	if r := asStatusError(err); r != nil {
		switch r.Status {
		case http.StatusTooManyRequests: // rejected before anything was done
			return true
		case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return !req.nonIdempotent
		case http.StatusInternalServerError:
			return r.Reason == "ServerTimeout" && !req.nonIdempotent
		}
		return false
	}
	var lost *lostError
	if errors.As(err, &lost) {
		return !req.nonIdempotent
	}
	return vedette.KindOf(err) == vedette.Unavailable
}

func retryAfter(err error) time.Duration {
	if r := asStatusError(err); r != nil {
		return r.RetryAfter
	}
	return 0
}

// sleep waits for d and reports true. If ctx ends before, it reports false, at once if it can.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
