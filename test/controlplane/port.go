//go:build unix

package controlplane

import (
	"fmt"
	"syscall"
)

// port is a TCP port of 127.0.0.1 that is reserved until the plane stops. A socket is bound to it
// that never listens. Therefore no other program gets the port, clients are refused while the API
// server is down, and the API server can bind it repeatedly because both sockets share it
// (--permit-port-sharing).
type port struct {
	number int
	socket int
}

// reservePort reserves a port that the kernel chooses. The kernel never chooses a bound port, even
// if it is shared.
func reservePort() (*port, error) {
	// Prevent a fork before the descriptor is close-on-exec, because a child that inherits it would
	// hold the port.
	syscall.ForkLock.RLock()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	number, err := bindShared(socket)
	if err != nil {
		syscall.Close(socket)
		return nil, fmt.Errorf("reserve a port of 127.0.0.1: %w", err)
	}
	return &port{number: number, socket: socket}, nil
}

func bindShared(socket int) (int, error) {
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, reusePort, 1); err != nil {
		return 0, err
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	address, err := syscall.Getsockname(socket)
	if err != nil {
		return 0, err
	}
	return address.(*syscall.SockaddrInet4).Port, nil
}

// release releases the port. A nil port does nothing.
func (p *port) release() {
	if p != nil {
		syscall.Close(p.socket)
	}
}
