package watch

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
)

// lane is one connection that carries up to a number of watches.
type lane struct {
	base    *http.Transport
	rt      http.RoundTripper
	streams int
	old     bool
	// opening is held by a request that finds no connection, so that a dozen
	// feeds that begin together shake hands once and not a dozen times.
	opening chan struct{}
	opened  atomic.Bool // the last request got an answer
}

// lanes spreads watches over connections. An API server refuses streams beyond
// 100 to 250 per connection; the watch that waits for one would look alive.
type lanes struct {
	most int
	open func() (*http.Transport, http.RoundTripper, error)

	mu   sync.Mutex
	list []*lane
}

// take returns a lane with room, and counts the caller in.
func (l *lanes) take() (*lane, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ln := range l.list {
		if ln.streams < l.most {
			ln.streams++
			return ln, nil
		}
	}
	base, rt, err := l.open()
	if err != nil {
		return nil, err
	}
	ln := &lane{base: base, rt: rt, streams: 1, opening: make(chan struct{}, 1)}
	l.list = append(l.list, ln)
	return ln, nil
}

// leave counts the caller out. The last one out of an old lane closes it.
func (l *lanes) leave(ln *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln.streams--; ln.streams == 0 && ln.old {
		ln.base.CloseIdleConnections()
	}
}

// renew lets every new watch go over a new connection.
func (l *lanes) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ln := range l.list {
		if ln.old = true; ln.streams == 0 {
			ln.base.CloseIdleConnections()
		}
	}
	l.list = nil
}

// roundTrip sends a request over the lane. Where there may be no connection,
// others wait until the answer's head says that there is one.
func (ln *lane) roundTrip(req *http.Request) (*http.Response, error) {
	if !ln.opened.Load() {
		select {
		case ln.opening <- struct{}{}:
			defer func() { <-ln.opening }()
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
	resp, err := ln.rt.RoundTrip(req)
	ln.opened.Store(err == nil)
	return resp, err
}
