package sharing

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Balancer passes connections on to one of several servers, as a Service does: to a random one, and to the next if that takes none.
type Balancer struct {
	listener net.Listener
	targets  []string
	first    int
	open     sync.WaitGroup

	mu        sync.Mutex
	conns     map[net.Conn]struct{}
	hasServed bool
}

// NewBalancer starts a balancer, which ends with the test. The first connection goes to the target with the index first; negative for a
// random one.
func NewBalancer(t testing.TB, targets []string, first int) *Balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &Balancer{listener: listener, targets: targets, first: first, conns: map[net.Conn]struct{}{}}
	b.open.Go(b.accept)
	t.Cleanup(b.close)
	return b
}

// Address returns the address of the balancer.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

func (b *Balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.open.Go(func() { b.pass(conn) })
	}
}

// order returns the indexes of the targets in the order in which they are tried.
func (b *Balancer) order() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	order := rand.Perm(len(b.targets))
	if !b.hasServed && b.first >= 0 {
		order = append([]int{b.first}, order...)
	}
	b.hasServed = true
	return order
}

func (b *Balancer) pass(from net.Conn) {
	defer from.Close()
	for _, i := range b.order() {
		to, err := net.Dial("tcp", b.targets[i])
		if err != nil {
			continue
		}
		defer to.Close()
		defer b.forget(from, to)
		b.remember(from, to)
		var both sync.WaitGroup
		for _, c := range [][2]net.Conn{{from, to}, {to, from}} {
			both.Go(func() {
				_, _ = io.Copy(c[1], c[0]) // ends when one side does
				_ = c[0].Close()
				_ = c[1].Close()
			})
		}
		both.Wait()
		return
	}
}

func (b *Balancer) remember(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		b.conns[c] = struct{}{}
	}
}

func (b *Balancer) forget(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		delete(b.conns, c)
	}
}

func (b *Balancer) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	for c := range b.conns {
		_ = c.Close()
	}
	b.mu.Unlock()
	b.open.Wait()
}
