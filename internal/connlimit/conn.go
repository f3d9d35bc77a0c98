package connlimit

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/vedette-io/vedette/internal/fair"
)

const (
	// freeHeaderBytes may arrive for each request without a reservation. Nearly all requests have less.
	freeHeaderBytes = 16 << 10
	// headerCost is reserved when a request has more: what net/http accepts, as it arrives and as it becomes.
	headerCost = 2 * 128 << 10
)

// errNoHeaderMemory ends a connection whose headers find no memory while they arrive. net/http answers it with 400.
var errNoHeaderMemory = errors.New("no memory for large headers: send smaller ones, or fewer requests at a time")

// conn is a connection that counts the bytes of headers as they arrive.
type conn struct {
	net.Conn
	listener  *Listener
	source    string
	rejection string // why it is one too many; empty if it is not
	close     sync.Once

	mu        sync.Mutex
	isWaiting bool // for a request, or for the rest of its headers
	isClosed  bool
	received  int64       // bytes since the last request has ended
	grant     *fair.Grant // for headers; nil if none is reserved
}

func (c *conn) Read(p []byte) (int, error) {
	if c.needsGrant() {
		if err := c.reserve(context.Background()); err != nil {
			return 0, errNoHeaderMemory
		}
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isWaiting {
		c.received += int64(n)
	}
	return n, err
}

func (c *conn) needsGrant() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isWaiting && c.received >= freeHeaderBytes && c.grant == nil
}

func (c *conn) reserve(ctx context.Context) error {
	grant, err := c.listener.headers.Acquire(ctx, c.source, headerCost)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		grant.Release()
		return net.ErrClosed
	}
	c.grant = grant
	return nil
}

// waits reports whether no request of the connection is under way.
func (c *conn) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isWaiting
}

// beginRequest ends the counting, because the rest is a body, which is limited elsewhere. Headers that
// arrived together with the request before them pay here.
func (c *conn) beginRequest(r *http.Request) error {
	c.mu.Lock()
	c.isWaiting = false
	isPaid := c.grant != nil
	c.mu.Unlock()
	if isPaid || headerSize(r) <= freeHeaderBytes {
		return nil
	}
	return c.reserve(r.Context())
}

func headerSize(r *http.Request) int {
	size := len(r.RequestURI)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	return size
}

func (c *conn) endRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isWaiting, c.received = true, 0
	c.releaseLocked()
}

// releaseLocked returns the memory for headers, if any is reserved.
func (c *conn) releaseLocked() {
	if c.grant != nil {
		c.grant.Release()
	}
	c.grant = nil
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.close.Do(func() {
		c.listener.remove(c)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.isClosed = true
		c.releaseLocked()
	})
	return err
}
