// Package latest keeps the newest version of something that many requests need and that takes time to read or to compute.
package latest

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// timeout bounds one computation. Callers can leave earlier.
const timeout = 30 * time.Second

// Value keeps the last version of a value, which is immutable: it is replaced, never changed. The zero value has none. It is
// safe for concurrent use, and has no lock that is held while a value is computed.
type Value[V any] struct {
	last    atomic.Pointer[V]
	flights singleflight.Group
}

// Last returns the last version, or nil.
func (v *Value[V]) Last() *V { return v.last.Load() }

// Get returns the last version if it is current, or else the next one, which next computes from the last one, or from nil.
// One is computed at a time. Callers who come meanwhile wait for it, and then for another one if it is not current for them: it may
// have begun before what they must see. A caller leaves when ctx ends, but next goes on, because others may wait for it. If it
// fails, the last version stays.
func (v *Value[V]) Get(ctx context.Context, isCurrent func(*V) bool, next func(ctx context.Context, last *V) (*V, error)) (*V, error) {
	for {
		if last := v.last.Load(); last != nil && isCurrent(last) {
			return last, nil
		}
		var computed atomic.Pointer[V] // by this caller's function
		done := v.flights.DoChan("", func() (any, error) {
			last := v.last.Load()
			if last != nil && isCurrent(last) { // it was computed in the meantime
				return nil, nil
			}
			shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
			defer cancel()
			value, err := call(shared, last, next)
			if err == nil {
				v.last.Store(value)
				computed.Store(value)
			}
			return nil, err
		})
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case result := <-done:
			if value := computed.Load(); value != nil || result.Err != nil {
				return value, result.Err
			}
		}
	}
}

// call returns a panic of next as an error, because it would end the process: next runs in a goroutine of its own.
func call[V any](ctx context.Context, last *V, next func(context.Context, *V) (*V, error)) (value *V, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return next(ctx, last)
}
