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

	isBlackholed atomic.Bool // for good
	isHeld       atomic.Bool // until the proxy is healed
	forwarded    [2]atomic.Int64

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

// piece is some data under way.
type piece struct {
	data []byte
	due  time.Time
}

// maxInFlight is how many pieces of a direction may be between the two ends.
const maxInFlight = 64

// copy forwards one direction. Where one end stops to write, the other is told;
// any failure resets both.
func (l *link) copy(d Direction, to, from net.Conn) {
	pieces := make(chan piece, maxInFlight)
	l.proxy.work.Go(func() { defer close(pieces); l.read(d, from, pieces) })
	for p := range pieces {
		if !l.write(d, to, p) {
			l.reset()
			for range pieces { // until the reader has noticed
			}
			return
		}
	}
	if tcp, ok := to.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		return
	}
	l.reset()
}

// read puts pieces on their way until the end is closed.
func (l *link) read(d Direction, from net.Conn, pieces chan<- piece) {
	for {
		buf := make([]byte, 32<<10)
		n, err := from.Read(buf)
		if d == Up && l.proxy.matchesTrigger(buf[:n]) {
			l.isHeld.Store(true)
		}
		if n > 0 {
			select {
			case pieces <- piece{buf[:n], l.proxy.dueTime(time.Now())}:
			case <-l.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// write forwards a piece when it is due. It reports false where the link ended.
func (l *link) write(d Direction, to net.Conn, p piece) bool {
	l.wait(time.Until(p.due))
	for len(p.data) > 0 {
		n, err := l.awaitForward(d, len(p.data))
		if err != nil {
			return false
		}
		if _, err := to.Write(p.data[:n]); err != nil {
			return false
		}
		l.forwarded[d].Add(int64(n))
		p.data = p.data[n:]
	}
	return true
}

// wait waits, unless the link ends before.
func (l *link) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
	}
}

// awaitForward waits as the proxy's state asks for, and returns how many of n bytes may be
// forwarded then. Its error says that the link ended meanwhile.
func (l *link) awaitForward(d Direction, n int) (int, error) {
	s := l.proxy.stateOf(d)
	l.wait(s.delay)
	if s.rate > 0 {
		n = min(n, max(1, s.rate/20))
		l.wait(time.Duration(n) * time.Second / time.Duration(s.rate))
	}
	for l.ctx.Err() == nil {
		remaining := s.stall - int(l.forwarded[d].Load())
		if !s.frozen && !l.isBlackholed.Load() && !l.isHeld.Load() && (s.stall == 0 || remaining > 0) {
			if s.stall > 0 {
				n = min(n, remaining)
			}
			break
		}
		select {
		case <-s.changed:
			s = l.proxy.stateOf(d)
		case <-l.ctx.Done():
		}
	}
	return n, l.ctx.Err()
}
