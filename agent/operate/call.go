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
	"github.com/vedette-io/vedette/agent/watch"
)

// The media types of patches.
const (
	typeJSON      = "application/json"
	typeStrategic = "application/strategic-merge-patch+json"
	typeMerge     = "application/merge-patch+json"
	typeJSONPatch = "application/json-patch+json"
	typeApply     = "application/apply-patch+yaml" // JSON is YAML too
)

// The forms in which Secrets are asked for, whatever is done to them.
const (
	metadataOnly     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataOnlyList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// call is one request.
type call struct {
	method      string
	path        string
	query       url.Values
	accept      string
	contentType string
	body        []byte
	once        bool // doing it twice is not the same as doing it once
	wiped       bool // the answer may hold a Secret's data: the caller clears it
	manifest    bool // the body is a user's manifest, or what is to come of one
	dry         bool // the cluster judges it and changes nothing; send sets it
}

// reads reports whether a request changes nothing.
func (c call) reads() bool { return c.dry || c.method == "" || c.method == http.MethodGet }

// with is the same request with one more parameter.
func (c call) with(parameter, value string) call {
	c.query = maps.Clone(c.query)
	if c.query == nil {
		c.query = url.Values{}
	}
	c.query.Set(parameter, value)
	return c
}

// send makes a request and returns the body of a success. Throttling and what
// broke off are tried again while the context lasts.
func (o *Operator) send(ctx context.Context, c call) ([]byte, int, error) {
	c = c.validated(ctx)
	if isDry(ctx) && !c.reads() {
		c = c.asDryRun()
	}
	pause := o.cfg.FirstRetry
	var lost *lostError // the last answer that did not come, or did not say
	for made := 1; ; made++ {
		body, status, err := o.sendOnce(ctx, c)
		if err == nil && c.dry && status == http.StatusCreated {
			body, err = versioned(body)
		}
		if err == nil {
			return body, status, nil
		}
		if !errors.As(err, &lost) && !c.reads() && undecided(err) {
			lost = &lostError{err: err}
		}
		if ctx.Err() != nil || !o.cfg.Retries.again(c, err, made) {
			return body, status, noteLost(ctx, lost, err)
		}
		wait := o.cfg.Retries.Pause
		if wait <= 0 {
			wait = pause/2 + rand.N(pause)
		}
		if !sleep(ctx, max(retryAfter(err), wait)) {
			return nil, status, noteLost(ctx, lost, err)
		}
		pause = min(2*pause, o.cfg.MostRetry)
	}
}

func (o *Operator) sendOnce(ctx context.Context, c call) ([]byte, int, error) {
	resp, err := o.cluster.Do(ctx, watch.Request{
		Method: c.method, Path: c.path, Query: c.query, Accept: c.accept, ContentType: c.contentType, Body: c.body, Wiped: c.wiped})
	if err != nil {
		return nil, 0, c.unanswered(ctx, err)
	}
	defer resp.Body.Close()
	noteWarnings(ctx, resp.Header)
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, resp.StatusCode, readRefusal(resp)
	}
	body, err := readAll(resp.Body, c.wiped)
	if err != nil && c.reads() {
		return nil, resp.StatusCode, vedette.Errorf(vedette.Unavailable, "%s broke off in the middle of its answer: %w", o.cluster.Host(), err)
	}
	if err != nil {
		return nil, resp.StatusCode, &lostError{err: err}
	}
	return body, resp.StatusCode, nil
}

// unanswered tells a request that never left from one whose answer is missing.
func (c call) unanswered(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !strings.Contains(err.Error(), cause.Error()) {
		err = fmt.Errorf("%w (%w)", err, cause)
	}
	if c.reads() || !watch.Sent(err) {
		return err
	}
	return &lostError{err: err}
}

// answers are buffers for what answers are read into.
var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// mostPooled bounds the buffers that are kept.
const mostPooled = 64 << 10

// readAll reads all. What it outgrew is cleared where that is asked for.
func readAll(from io.Reader, wiped bool) ([]byte, error) {
	if wiped {
		return readWiped(from)
	}
	b := answers.Get().(*bytes.Buffer)
	b.Reset()
	_, err := b.ReadFrom(from)
	all := bytes.Clone(b.Bytes())
	clear(b.Bytes()) // metadata of a Secret may hold its data
	if b.Cap() <= mostPooled {
		answers.Put(b)
	}
	return all, err
}

func readWiped(from io.Reader) ([]byte, error) {
	all := make([]byte, 0, 64<<10)
	for {
		n, err := from.Read(all[len(all):cap(all)])
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

// again reports whether trying again may help and does no harm.
func (c call) again(err error) bool {
	if r := refusalOf(err); r != nil {
		switch r.Status {
		case http.StatusTooManyRequests: // refused before anything was done
			return true
		case http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return !c.once
		case http.StatusInternalServerError:
			return r.Reason == "ServerTimeout" && !c.once
		}
		return false
	}
	var lost *lostError
	if errors.As(err, &lost) {
		return !c.once
	}
	return vedette.KindOf(err) == vedette.Unavailable
}

func retryAfter(err error) time.Duration {
	if r := refusalOf(err); r != nil {
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
