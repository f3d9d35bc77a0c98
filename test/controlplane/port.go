//go:build unix

package controlplane

import (
	"fmt"
	"syscall"
)

// port is a TCP port of 127.0.0.1 that is ours as long as the plane lives. A
// socket is bound to it that never listens: nobody else gets the port, clients
// are refused while the API server is down, and the API server may bind it again
// and again since both ask to share it (--permit-port-sharing).
type port struct {
	number int
	socket int
}

// reservePort binds a port that the kernel picks. The kernel never picks one
// that is bound, not even one that is shared.
func reservePort() (*port, error) {
	// Fork must not see the descriptor before it is marked close-on-exec: a child
	// that inherits it would hold the port.
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

// release gives the port back. A nil port is released already.
func (p *port) release() {
	if p != nil {
		syscall.Close(p.socket)
	}
}
