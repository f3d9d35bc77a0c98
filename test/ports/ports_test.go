package ports

import (
	"fmt"
	"net"
	"testing"
)

func TestPortsAreReservedOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 500 {
		port, err := Reserve()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] || port < firstPort || port >= lastPort {
			t.Fatalf("port %d was reserved before, or is in the kernel's range", port)
		}
		seen[port] = true
		if err := claim(port); err == nil {
			t.Fatalf("port %d can be claimed twice", port)
		}
	}
}

func TestPortsInUse(t *testing.T) {
	port, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := listen(port); err == nil {
		t.Errorf("port %d was reserved, but a program listens on it", port)
	}
}
