// Package tcpserver runs servers for tests of what is below HTTP and gRPC.
package tcpserver

import (
	"net"
	"testing"
)

// New starts a server that handles each connection in a goroutine of its own, and then closes it. It
// accepts connections until the test ends, and returns its address.
func New(t testing.TB, handle func(conn net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return listener.Addr().String()
}
