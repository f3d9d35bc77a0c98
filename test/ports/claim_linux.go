package ports

import (
	"fmt"
	"net"
	"sync"
)

var (
	mu     sync.Mutex
	claims []net.Listener // kept, because the garbage collector closes unreferenced listeners
)

// claim binds an abstract socket name, which the kernel releases when the process ends.
func claim(port int) error {
	l, err := net.Listen("unix", fmt.Sprintf("@vedette-test-port-%d", port))
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	claims = append(claims, l)
	return nil
}
