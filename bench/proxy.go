package main

import (
	"io"
	"net"
	gosync "sync"
	"sync/atomic"
)

// proxy forwards TCP connections and counts their bytes.
type proxy struct {
	listener net.Listener
	target   string
	up, down atomic.Int64 // bytes to the target and from it

	mu    gosync.Mutex
	conns map[net.Conn]bool
}

func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target, conns: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	_ = p.listener.Close() // the proxy is not used anymore
	p.cut()
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // an error means that it is closed already
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close() // as the target would do
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		go p.forward(server, client, &p.up)
		go p.forward(client, server, &p.down)
	}
}

func (p *proxy) forward(to, from net.Conn, bytes *atomic.Int64) {
	_, _ = io.Copy(io.MultiWriter(to, (*counter)(bytes)), from) // either side may close the connection
	_ = to.Close()
	_ = from.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
	delete(p.conns, from)
}

// counter counts the bytes that are written to it.
type counter atomic.Int64

func (c *counter) Write(b []byte) (int, error) {
	(*atomic.Int64)(c).Add(int64(len(b)))
	return len(b), nil
}
