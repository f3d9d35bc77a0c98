package operate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// The media types of patches.
const (
	contentTypeJSON           = "application/json"
	contentTypeStrategicPatch = "application/strategic-merge-patch+json"
	contentTypeMergePatch     = "application/merge-patch+json"
	contentTypeJSONPatch      = "application/json-patch+json"
	contentTypeApplyPatch     = "application/apply-patch+yaml" // JSON is YAML too
)

// The forms in which Secrets are asked for, whatever is done to them.
const (
	acceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// request is one request.
type request struct {
	method        string
	path          string
	query         url.Values
	accept        string
	contentType   string
	body          []byte
	nonIdempotent bool // doing it twice is not the same as doing it once
	sensitive     bool // the answer may hold a Secret's data: the caller clears it
	isManifest    bool // the body is a user's manifest, or what is to come of one
	dryRun        bool // the cluster judges it and changes nothing; send sets it
}

// isReadOnly reports whether a request changes nothing.
func (req request) isReadOnly() bool {
	return req.dryRun || req.method == "" || req.method == http.MethodGet
}

// withQuery is the same request with one more parameter.
func (req request) withQuery(parameter, value string) request {
	req.query = maps.Clone(req.query)
	if req.query == nil {
		req.query = url.Values{}
	}
	req.query.Set(parameter, value)
	return req
}

// send makes a request and returns the body of a success. Throttling and what
// broke off are tried again while the context lasts.
func (r *run) send(ctx context.Context, req request) ([]byte, int, error) {
	if req.isManifest && r.fieldValidation != "" { // old API servers ignore it
		req = req.withQuery("fieldValidation", r.fieldValidation)
	}
	if r.dryRun && !req.isReadOnly() {
		req = req.asDryRun()
	}
	backoff := r.operator.cfg.InitialBackoff
	var lost *lostError // the last answer that did not come, or did not say
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
		if ctx.Err() != nil || !r.operator.cfg.Retry.shouldRetry(req, err, attempt) {
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
	}
}

func (r *run) sendOnce(ctx context.Context, req request) ([]byte, int, error) {
	resp, err := r.operator.cluster.Do(ctx, kube.Request{
		Method: req.method, Path: req.path, Query: req.query, Accept: req.accept, ContentType: req.contentType, Body: req.body, WipeBuffers: req.sensitive})
	if err != nil {
		return nil, 0, req.classifySendError(ctx, err)
	}
	defer resp.Body.Close()
	r.warnings.addHeader(resp.Header)
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, resp.StatusCode, readStatusError(resp)
	}
	body, err := readAll(resp.Body, req.sensitive)
	if err != nil && req.isReadOnly() {
		return nil, resp.StatusCode, vedette.Errorf(vedette.Unavailable, "%s broke off in the middle of its answer: %w", r.operator.cluster.Host(), err)
	}
	if err != nil {
		return nil, resp.StatusCode, &lostError{err: err}
	}
	return body, resp.StatusCode, nil
}

// classifySendError tells a request that never left from one whose answer is missing.
func (req request) classifySendError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !strings.Contains(err.Error(), cause.Error()) {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	if req.isReadOnly() || !kube.MayHaveBeenSent(err) {
		return err
	}
	return &lostError{err: err}
}

// responseBuffers are buffers for what answers are read into.
var responseBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxPooledBufferBytes bounds the buffers that are kept.
const maxPooledBufferBytes = 64 << 10

// readAll reads all. What it outgrew is cleared where that is asked for.
func readAll(r io.Reader, sensitive bool) ([]byte, error) {
	if sensitive {
		return readSensitive(r)
	}
	b := responseBuffers.Get().(*bytes.Buffer)
	b.Reset()
	_, err := b.ReadFrom(r)
	all := bytes.Clone(b.Bytes())
	clear(b.Bytes()) // metadata of a Secret may hold its data
	if b.Cap() <= maxPooledBufferBytes {
		responseBuffers.Put(b)
	}
	return all, err
}

func readSensitive(r io.Reader) ([]byte, error) {
	all := make([]byte, 0, 64<<10)
	for {
		n, err := r.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			clear(all)
			return nil, err
		}
		if len(all) == cap(all) {
			grown := append(make([]byte, 0, 2*cap(all)), all...)
			clear(all)
			all = grown
		}
	}
}

// isRetryable reports whether trying again may help and does no harm.
func (req request) isRetryable(err error) bool {
	if r := asStatusError(err); r != nil {
		switch r.Status {
		case http.StatusTooManyRequests: // refused before anything was done
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

// sleep waits, unless the context would be over by then.
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
