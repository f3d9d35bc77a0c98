package servers

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// balancer passes connections on to one of several servers, as a Service does: to a random one, and to the next if that takes none.
type balancer struct {
	listener net.Listener
	targets  []string
	open     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newBalancer(t *testing.T, targets []string) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{listener: listener, targets: targets, conns: map[net.Conn]struct{}{}}
	b.open.Go(b.accept)
	t.Cleanup(b.close)
	return b
}

func (b *balancer) address() string { return b.listener.Addr().String() }

func (b *balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.open.Go(func() { b.pass(conn) })
	}
}

func (b *balancer) pass(from net.Conn) {
	defer from.Close()
	for _, i := range rand.Perm(len(b.targets)) {
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

func (b *balancer) remember(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		b.conns[c] = struct{}{}
	}
}

func (b *balancer) forget(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		delete(b.conns, c)
	}
}

func (b *balancer) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	for c := range b.conns {
		_ = c.Close()
	}
	b.mu.Unlock()
	b.open.Wait()
}
