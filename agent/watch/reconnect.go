package watch

import (
	"errors"
	"time"
)

// errReconnect ends an attempt that goes on over another connection.
var errReconnect = errors.New("the feed's connection is opened anew")

// noteConnLost notes that a connection to the API server was found lost. Whatever took
// it away, a firewall that forgot its connections or a proxy that was replaced, may
// have taken those of other feeds too.
func (w *Watcher) noteConnLost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connLostAt = time.Now()
}

// reconnectIfStale makes the feed go on from its mark over a new connection where it can't
// tell by itself that the old one is lost, and began before another one was found
// so. HTTP/2 has pings; the connections of Secrets do not, and would wait for
// kube.DefaultIdleTimeout. It costs one request. A list is left alone: it would begin anew each
// time, and never end where connections are lost often, and it waits for
// Options.Pause at most.
func (f *feed) reconnectIfStale(connLostAt time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Kind == secretKind && f.watching.Load() && f.cancel != nil && f.attemptStart.Before(connLostAt) {
		f.cancel(errReconnect)
	}
}
