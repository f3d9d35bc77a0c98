package proxy

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one forwarded connection.
type link struct {
	proxy  *Proxy
	ctx    context.Context
	cancel context.CancelFunc

	isBlackholed atomic.Bool // permanently
	isHeld       atomic.Bool // until Heal
	forwarded    [2]atomic.Int64

	mu   sync.Mutex
	ends []net.Conn
}

// add adds the target's end. It closes it and reports false if the link was reset meanwhile.
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

// reset closes both connections with RST.
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
		_ = tcp.SetLinger(0) // fails if the connection has ended already, which is fine
	}
	_ = conn.Close()
}

// piece is data in flight.
type piece struct {
	data []byte
	due  time.Time
}

// maxInFlight is the maximum number of pieces in flight per direction.
const maxInFlight = 64

// copy forwards one direction. At the end of the data it closes the write side of the connection to
// the other end, so that this reads EOF. Any error resets both connections.
func (l *link) copy(d Direction, to, from net.Conn) {
	pieces := make(chan piece, maxInFlight)
	l.proxy.work.Go(func() { defer close(pieces); l.read(d, from, pieces) })
	for p := range pieces {
		if !l.write(d, to, p) {
			l.reset()
			for range pieces { // until read has noticed
			}
			return
		}
	}
	if tcp, ok := to.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		return
	}
	l.reset()
}

// read sends pieces to the channel until the connection is closed.
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

// write forwards a piece when it is due. It reports false if the link has ended.
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

// wait sleeps, unless the link ends before.
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

// awaitForward waits until the proxy may forward data, and returns how many of n bytes it may
// forward. It fails if the link has ended.
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
