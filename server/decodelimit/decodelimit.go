// Package decodelimit reserves memory for what the bodies of requests become. Two bytes of JSON can
// become hundreds of bytes of memory, so that a limit of the bytes that arrive protects nothing.
//
//   - A body is measured before anything of it is built, and before its sender's permissions are known.
//   - A body that would become too much is rejected, whatever is free.
//   - All bodies share one budget, fairly by caller. Small ones have a part of it for themselves.
package decodelimit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/membudget"
	"github.com/vedette-io/vedette/server/readlimit"
)

// MaxBytes is what one body may become. A deployment of 15 MiB of ConfigMaps becomes about 50 MiB, one
// of 4 MiB of Deployments about 40 MiB.
const MaxBytes = 96 << 20

// defaultBytes is the budget of all bodies together, in a process with enough memory. One caller has at most half of what
// is for large ones.
const defaultBytes = 256 << 20

const (
	// leastBytes is the budget of a small process. A deployment of 10 MiB of ConfigMaps, or of 3 MiB of Deployments, fits.
	leastBytes = 96 << 20
	smallBytes = 1 << 20          // what a small body becomes at most
	wait       = 10 * time.Second // for memory
	queue      = 100              // requests of one caller that wait
	// copies is how many times the bytes of a body are in memory besides what is built of them: a body is
	// split into operations, and these into their members, before manifests are built.
	copies = 4
	// measuring is how many times its bytes a body takes at most while it is measured.
	measuring = 8
)

// Limiter is the budget of one server. It is safe for concurrent use.
type Limiter struct {
	small, large *fair.Line
	largest      int64 // what one body may become: MaxBytes, or the share of a caller
}

// New returns a Limiter for a process that may take so many bytes; 0 means that nobody knows. OnWait may be nil.
func New(available int64, onWait func(waited time.Duration, granted bool)) *Limiter {
	bytes := max(membudget.Fit(defaultBytes, available), leastBytes)
	small, large := bytes/4, bytes-bytes/4
	line := func(bytes int64) *fair.Line {
		return fair.New(fair.Config{Capacity: bytes, Share: bytes / 2, Queue: queue, Wait: wait, OnWait: onWait})
	}
	return &Limiter{line(small), line(large), min(MaxBytes, large/2)}
}

// Handler lets Reserve take memory for requests to next, until next returns.
func (l *Limiter) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		held := &reservation{limiter: l, key: readlimit.CallerOf(r).Source}
		defer held.release()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), reservationKey{}, held)))
	})
}

type reservationKey struct{}

// reservation is the memory of one request.
type reservation struct {
	limiter *Limiter
	key     string

	mu       sync.Mutex
	measured bool
	grant    *fair.Grant // nil for none
}

// Reserve measures a body and waits until there is memory for what it becomes, until the request has
// ended. A body that is read twice counts once. The error is vedette.Invalid for a body that becomes too much
// or has a name twice, and vedette.Unavailable if there was no memory in time. Other bodies that are not
// JSON are left to their parsers.
func Reserve(ctx context.Context, body []byte) error {
	held, ok := ctx.Value(reservationKey{}).(*reservation)
	if !ok { // tests of handlers
		held = &reservation{}
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.measured {
		return nil
	}
	// The names of an object are in memory while it is measured, because none may occur twice.
	if err := held.hold(ctx, measuring*int64(len(body))); err != nil {
		return err
	}
	size, err := exactjson.Measure(body, new(any), exactjson.Limits{Bytes: held.limiter.mayBecome()})
	if err != nil {
		return held.limiter.measureError(body, err)
	}
	held.measured = true
	return held.hold(ctx, size.Bytes+copies*int64(len(body)))
}

func (l *Limiter) mayBecome() int64 {
	if l == nil {
		return MaxBytes
	}
	return l.largest
}

func (l *Limiter) measureError(body []byte, err error) error {
	if _, ok := errors.AsType[*exactjson.LimitError](err); ok {
		if l.mayBecome() < MaxBytes {
			return vedette.Errorf(vedette.Invalid, "the body is too large for the memory that this server has: %w: send less at a time, "+
				"or give the server 1.5 GiB", err)
		}
		return vedette.Errorf(vedette.Invalid, "the body is too large: %w", err)
	}
	if !json.Valid(body) {
		return nil // whoever parses it says what is wrong, and builds nothing
	}
	return vedette.Errorf(vedette.Invalid, "the body is not valid JSON: %w", err)
}

// hold waits until the request may hold so many bytes. It holds nothing while it waits for more, so that
// requests do not wait for each other.
func (r *reservation) hold(ctx context.Context, bytes int64) error {
	if r.limiter == nil {
		return nil
	}
	if excess := r.grant.Units() - bytes; r.grant != nil && excess >= 0 {
		r.grant.Shrink(excess)
		return nil
	}
	r.grant.Release()
	line := r.limiter.large
	if bytes <= smallBytes {
		line = r.limiter.small
	}
	var err error
	r.grant, err = line.Acquire(ctx, r.key, bytes) // more than the share of a caller counts as that
	switch {
	case errors.Is(err, fair.ErrQueueFull):
		return vedette.Errorf(vedette.Unavailable, "%d requests of this caller are already waiting for memory on this server: "+
			"send fewer requests at a time", queue)
	case errors.Is(err, fair.ErrTimeout):
		return vedette.Errorf(vedette.Unavailable, "the bodies of other requests have used the memory that this server has for them, for %v: "+
			"try again, and send fewer large requests at a time", wait)
	}
	return err
}

func (r *reservation) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grant.Release()
}
