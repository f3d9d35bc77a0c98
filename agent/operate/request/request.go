package request

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// The media types of request bodies.
const (
	ContentTypeJSON           = "application/json"
	ContentTypeStrategicPatch = "application/strategic-merge-patch+json"
	ContentTypeMergePatch     = "application/merge-patch+json"
	ContentTypeJSONPatch      = "application/json-patch+json"
	ContentTypeApplyPatch     = "application/apply-patch+yaml" // JSON is YAML too
)

// The media types that Secrets are requested in by all verbs: without their data.
const (
	AcceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// object is a JSON object. Whole numbers in it are int64.
type object = map[string]any

// Request is one request to the API server.
type Request struct {
	Method        string
	Path          string
	Query         url.Values
	Accept        string
	ContentType   string // of the body; default JSON
	Body          []byte
	DeleteOptions metav1.DeleteOptions // of a DELETE, whose body they are
	FieldManager  string               // of what it writes; empty for none, and API servers use the name of the program
	NonIdempotent bool                 // it must not be sent again if it may have taken effect
	Sensitive     bool                 // the response may hold the data of a Secret: the caller clears it
	IsManifest    bool                 // the body is a user's manifest, or is computed from one
	dryRun        bool                 // send sets it
	IsReview      bool                 // a POST whose object is not stored, but answered
	Decoding      Decoding
	// Consume reads the body of a successful response instead of send. Nil for none.
	Consume func(io.Reader) error
}

// isReadOnly reports whether a request changes nothing.
func (req Request) isReadOnly() bool {
	return req.dryRun || req.IsReview || req.Method == "" || req.Method == http.MethodGet
}

// withQuery returns the request with one more parameter.
func (req Request) withQuery(parameter, value string) Request {
	req.Query = maps.Clone(req.Query)
	if req.Query == nil {
		req.Query = url.Values{}
	}
	req.Query.Set(parameter, value)
	return req
}

// Send sends a request and returns the body and the status of a successful response. It retries as
// the retry policy says, until ctx ends.
func (s *Sender) Send(ctx context.Context, req Request) ([]byte, int, error) {
	if req.FieldManager != "" {
		req = req.withQuery("fieldManager", req.FieldManager)
	}
	if req.IsManifest && s.FieldValidation != "" { // old API servers ignore it
		req = req.withQuery("fieldValidation", s.FieldValidation)
	}
	if s.dryRun && !req.isReadOnly() {
		req = req.asDryRun()
	}
	if req.Method == http.MethodDelete {
		req.DeleteOptions.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
		var err error
		req.Body, err = json.Marshal(req.DeleteOptions)
		if err != nil {
			return nil, 0, err
		}
	}
	if req.Body != nil && req.ContentType == "" {
		req.ContentType = ContentTypeJSON
	}
	backoff := s.cfg.InitialBackoff
	var lost *LostError // the last response that did not arrive, or left open what happened
	release := s.TemporaryMemory()
	for attempt := 1; ; attempt++ {
		body, status, err := s.sendOnce(ctx, req)
		if err == nil && req.dryRun && status == http.StatusCreated {
			body, err = withDryRunVersion(body)
		}
		if err == nil {
			return body, status, nil
		}
		if !errors.As(err, &lost) && !req.isReadOnly() && mayHaveTakenEffect(err) {
			lost = &LostError{Err: err}
		}
		if ctx.Err() != nil || isFinal(err) || !s.cfg.Retry.shouldRetry(req, err, attempt) {
			return body, status, s.recordLost(lost, err)
		}
		delay := s.cfg.Retry.Backoff
		if delay <= 0 {
			delay = backoff/2 + rand.N(backoff)
		}
		if !Sleep(ctx, max(retryAfter(err), delay)) {
			return nil, status, s.recordLost(lost, err)
		}
		backoff = min(2*backoff, s.cfg.MaxBackoff)
		release()
	}
}

func (s *Sender) sendOnce(ctx context.Context, req Request) ([]byte, int, error) {
	resp, err := s.logged(ctx, s.cluster.Do, kube.Request{
		Method: req.Method, Path: req.Path, Query: req.Query, Accept: req.Accept, ContentType: req.ContentType, Body: req.Body,
		WipeBuffers: req.Sensitive, BeforeSend: func() error { return s.mayChange(ctx, req) }})
	s.noteSent(req, err)
	if err != nil {
		return nil, 0, req.classifySendError(ctx, err)
	}
	defer resp.Body.Close()
	s.Warnings.addHeader(resp.Header)
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, resp.StatusCode, s.readStatusError(ctx, resp)
	}
	var body []byte
	if req.Consume != nil {
		err = req.Consume(resp.Body)
	} else {
		body, err = s.readBody(ctx, resp.Body, req.Decoding)
	}
	if err != nil && req.isReadOnly() && isFinal(err) {
		return nil, resp.StatusCode, err
	}
	if err != nil && req.isReadOnly() {
		return nil, resp.StatusCode, vedette.Errorf(vedette.Unavailable, "the response of %s ended early: %w", s.Host(), err)
	}
	if err != nil {
		return nil, resp.StatusCode, &LostError{Err: err}
	}
	return body, resp.StatusCode, nil
}

// classifySendError returns a LostError if the request may have reached the API server.
func (req Request) classifySendError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !strings.Contains(err.Error(), cause.Error()) {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	if req.isReadOnly() || !kube.MayHaveBeenSent(err) {
		return err
	}
	return &LostError{Err: err}
}

// isRetryable reports whether a retry may succeed and does no harm.
func (req Request) isRetryable(err error) bool {
	if r := AsStatusError(err); r != nil {
		switch r.Status {
		case http.StatusTooManyRequests: // rejected before anything was done
			return true
		case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return !req.NonIdempotent
		case http.StatusInternalServerError:
			return r.Reason == "ServerTimeout" && !req.NonIdempotent
		}
		return false
	}
	if IsLost(err) {
		return !req.NonIdempotent
	}
	return vedette.KindOf(err) == vedette.Unavailable
}

func retryAfter(err error) time.Duration {
	if r := AsStatusError(err); r != nil {
		return r.RetryAfter
	}
	return 0
}

// Sleep waits for d and reports true. If ctx ends before, it reports false, at once if it can.
func Sleep(ctx context.Context, d time.Duration) bool {
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
