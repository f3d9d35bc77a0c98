package peer

import (
	"errors"
	"net"
	"sync"

	"github.com/vedette-io/vedette/internal/connlimit"
)

const (
	// maxUnproven is how many connections may be in their handshake, which anybody can begin. One address has half.
	maxUnproven = 256
	// maxPerPeer is how many connections one process may have. It needs one, and another while that breaks.
	maxPerPeer = 4
)

var errTooManyConnections = errors.New("the server has too many connections already")

// connections are those of a port for servers.
type connections struct {
	mu       sync.Mutex
	unproven map[string]int // by address
	total    int            // of unproven
	proven   map[*provenConn]Peer
}

func newConnections() *connections {
	return &connections{unproven: map[string]int{}, proven: map[*provenConn]Peer{}}
}

// listener limits the connections in their handshake.
type listener struct {
	net.Listener
	connections *connections
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // gRPC compares it
		}
		source := connlimit.SourceOf(conn.RemoteAddr().String())
		if l.connections.admit(source) {
			return &unprovenConn{Conn: conn, leave: sync.OnceFunc(func() { l.connections.leave(source) })}, nil
		}
		_ = conn.Close() // it has sent nothing that counts
	}
}

func (c *connections) admit(source string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total >= maxUnproven || c.unproven[source] >= maxUnproven/2 {
		return false
	}
	c.total++
	c.unproven[source]++
	return true
}

func (c *connections) leave(source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if c.unproven[source]--; c.unproven[source] == 0 {
		delete(c.unproven, source)
	}
}

// unprovenConn is a connection that has been accepted.
type unprovenConn struct {
	net.Conn
	leave func() // ends the count as unproven
}

// Close closes the connection.
func (c *unprovenConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// prove notes a connection whose peer has proved its key.
func (c *connections) prove(conn, raw net.Conn, p Peer) (net.Conn, error) {
	if u, ok := raw.(*unprovenConn); ok {
		u.leave()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, other := range c.proven {
		if other == p {
			n++
		}
	}
	if n >= maxPerPeer {
		_ = conn.Close() // nothing was sent
		return nil, errTooManyConnections
	}
	proven := &provenConn{Conn: conn, connections: c}
	c.proven[proven] = p
	return proven, nil
}

// provenConn is a connection of a server that runs.
type provenConn struct {
	net.Conn
	connections *connections
}

// Close closes the connection.
func (c *provenConn) Close() error {
	c.connections.mu.Lock()
	delete(c.connections.proven, c)
	c.connections.mu.Unlock()
	return c.Conn.Close()
}

// closeEvicted closes the connections of processes that do not run any more.
func (c *connections) closeEvicted(m members) {
	for _, conn := range c.evicted(m) {
		_ = conn.Close() // it is gone either way
	}
}

func (c *connections) evicted(m members) (evicted []*provenConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn, p := range c.proven {
		if !runs(m, p) {
			evicted = append(evicted, conn)
		}
	}
	return evicted
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.proven)
}

// runs reports whether a process still has its row.
func runs(m members, p Peer) bool {
	current, ok := m.ByKey(p.Key)
	return ok && current.ID == p.ID && current.Process == p.Process
}
