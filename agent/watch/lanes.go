package watch

import (
	"context"
	"net/http"
	"sync"
)

// lane is one connection that carries up to a number of watches.
type lane struct {
	base    *http.Transport
	rt      http.RoundTripper
	streams int
	old     bool
	// opening is held by the first request, so that a dozen feeds that begin
	// together shake hands once and not a dozen times.
	opening chan struct{}
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

// roundTrip sends a request over the lane. Until the answer's head is there,
// which says that there is a connection, others wait.
func (ln *lane) roundTrip(req *http.Request) (*http.Response, error) {
	select {
	case ln.opening <- struct{}{}:
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	defer func() { <-ln.opening }()
	return ln.rt.RoundTrip(req)
}
