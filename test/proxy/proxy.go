// Package proxy forwards connections between two programs of a test and injects network faults: it
// resets, refuses, slows down or silently stalls connections.
package proxy

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Direction is a direction of data.
type Direction int

// The directions, as seen by the client.
const (
	Up Direction = iota
	Down
)

// Proxy forwards TCP connections from its own address to a target. Its methods may be called from
// several goroutines.
type Proxy struct {
	listener net.Listener
	ctx      context.Context // ends with the proxy
	cancel   context.CancelFunc
	work     sync.WaitGroup

	mu       sync.Mutex
	target   string
	refuse   bool
	delay    time.Duration
	latency  time.Duration
	rate     int    // bytes per second and direction of each connection; 0 means unlimited
	stall    [2]int // bytes that each connection may still forward; 0 means unlimited
	frozen   [2]bool
	changed  chan struct{} // closed and replaced when frozen changes
	links    map[*link]bool
	trigger  *textTrigger
	accepted int
}

// textTrigger waits for a text in data from the client.
type textTrigger struct {
	text      []byte
	triggered chan struct{}
}

// New starts a proxy on a free port of 127.0.0.1. It is closed when the test ends.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := Start(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Start is like New for programs, which close the proxy themselves.
func Start(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{listener: listener, ctx: ctx, cancel: cancel, target: target, changed: make(chan struct{}), links: map[*link]bool{}}
	p.work.Go(p.accept)
	return p, nil
}

// Close closes the proxy and all connections, and waits until that is done.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.listener.Close() // the proxy is no longer needed
	p.Cut()
	p.work.Wait()
}

// Address returns the address of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// SetTarget changes the target of new connections.
func (p *Proxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Accepted returns how many connections were opened so far, including refused ones.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Cut resets all connections at both ends.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Refuse resets all connections, and new ones as soon as they are opened.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	p.refuse = true
	p.mu.Unlock()
	p.Cut()
}

// Slow delays each piece of data, one after the other.
func (p *Proxy) Slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// AddLatency delays data without limiting the rate. In contrast, Slow forwards one piece per delay.
func (p *Proxy) AddLatency(latency time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = latency
}

// Limit limits the bytes per second and direction of each connection.
func (p *Proxy) Limit(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = bytesPerSecond
}

// StallAfter freezes a direction of each connection, open or new, after it has forwarded the given
// number of bytes, for example in the middle of a response or a frame.
func (p *Proxy) StallAfter(d Direction, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stall[d] = n
	for l := range p.links {
		l.forwarded[d].Store(0)
	}
	p.changedLocked()
}

// Freeze stops forwarding in the given directions without closing connections. New connections are
// accepted and freeze too.
func (p *Proxy) Freeze(directions ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range directions {
		p.frozen[d] = true
	}
	p.changedLocked()
}

// Blackhole permanently stops forwarding on open connections without closing them, like a firewall
// that forgets them. New connections work. A blackholed connection ends only by Cut, Refuse or one
// of its ends.
func (p *Proxy) Blackhole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.isBlackholed.Store(true)
	}
	p.changedLocked()
}

// HoldOnText waits for a piece of data from the client that contains a text, in any case. From that
// piece on it forwards nothing on that connection until Heal. The channel is closed when that
// happens. It happens once.
func (p *Proxy) HoldOnText(text string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trigger = &textTrigger{bytes.ToLower([]byte(text)), make(chan struct{})}
	return p.trigger.triggered
}

// matchesTrigger reports whether a piece contains the text.
func (p *Proxy) matchesTrigger(piece []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trigger == nil || !bytes.Contains(bytes.ToLower(piece), p.trigger.text) {
		return false
	}
	close(p.trigger.triggered)
	p.trigger = nil
	return true
}

// Heal ends all faults. Frozen connections continue with the data that was held back; to lose it,
// call Cut first.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = false
	p.delay = 0
	p.frozen = [2]bool{}
	p.trigger = nil
	p.latency = 0
	p.rate = 0
	p.stall = [2]int{}
	for l := range p.links {
		l.isHeld.Store(false)
	}
	p.changedLocked()
}

func (p *Proxy) changedLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(conn) })
	}
}

// serve forwards one connection until it ends.
func (p *Proxy) serve(client net.Conn) {
	ctx, cancel := context.WithCancel(p.ctx)
	l := &link{proxy: p, ctx: ctx, cancel: cancel, ends: []net.Conn{client}}
	if !p.addLink(l) {
		return
	}
	defer p.removeLink(l)
	if _, err := l.awaitForward(Up, 1); err != nil {
		return
	}
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.targetAddress())
	if err != nil || !l.add(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.copy(Up, server, client) })
	both.Go(func() { l.copy(Down, client, server) })
	both.Wait()
}

func (p *Proxy) targetAddress() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

func (p *Proxy) addLink(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted++
	if p.refuse || p.ctx.Err() != nil {
		l.reset()
		return false
	}
	p.links[l] = true
	return true
}

func (p *Proxy) removeLink(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.reset()
	delete(p.links, l)
}

// linkState is how to treat data of one direction.
type linkState struct {
	frozen  bool
	delay   time.Duration
	rate    int
	stall   int
	changed <-chan struct{} // closed when frozen or stall changes
}

func (p *Proxy) stateOf(d Direction) linkState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return linkState{p.frozen[d], p.delay, p.rate, p.stall[d], p.changed}
}

func (p *Proxy) dueTime(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Add(p.latency)
}
