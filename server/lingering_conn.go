package server

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

// lingeringConn is a connection whose Close waits, if the handshake has failed, until the client
// has read why. The alert is the last thing that a rejected agent gets. If the server closed the
// connection while data of the agent was unread, the kernel would send a reset, and the agent
// might see only that.
type lingeringConn struct {
	net.Conn
	isEstablished atomic.Bool // the handshake has succeeded
}

const (
	lingerTimeout = time.Second
	maxLinger     = 64 << 10 // bytes of the client that are read and discarded
)

func (c *lingeringConn) Close() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if ok && !c.isEstablished.Load() && half.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTimeout)) == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, maxLinger) // it ends with an error unless the client sends more
	}
	return c.Conn.Close()
}
