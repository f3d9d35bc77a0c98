package proxy

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection that is forwarded.
type link struct {
	proxy  *Proxy
	ctx    context.Context
	cancel context.CancelFunc

	stranded atomic.Bool // for good
	held     atomic.Bool // until the proxy is healed

	mu   sync.Mutex
	ends []net.Conn
}

// add takes in the far end. It reports false, and closes it, where the link was
// reset meanwhile.
func (l *link) add(end net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		abort(end)
		return false
	}
	l.ends = append(l.ends, end)
	return true
}

// reset ends both connections by RST.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
	for _, end := range l.ends {
		abort(end)
	}
}

func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a connection that has ended already is as good
	}
	_ = conn.Close()
}

// copy forwards one direction. Where one end stops to write, the other is told;
// any failure resets both.
func (l *link) copy(d Direction, to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if d == Up && l.proxy.trapped(buf[:n]) {
			l.held.Store(true)
		}
		if l.hold(d) != nil {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				l.reset()
				return
			}
		}
		if err == nil {
			continue
		}
		if tcp, ok := to.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
			return
		}
		l.reset()
		return
	}
}

// hold waits as the proxy's state asks for. Its error says that the link ended
// meanwhile.
func (l *link) hold(d Direction) error {
	frozen, delay, changed := l.proxy.state(d)
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-l.ctx.Done():
		}
	}
	for (frozen || l.stranded.Load() || l.held.Load()) && l.ctx.Err() == nil {
		select {
		case <-changed:
			frozen, _, changed = l.proxy.state(d)
		case <-l.ctx.Done():
		}
	}
	return l.ctx.Err()
}
