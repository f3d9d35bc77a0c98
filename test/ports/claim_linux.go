package ports

import (
	"fmt"
	"net"
	"sync"
)

var (
	mu     sync.Mutex
	claims []net.Listener // kept, because the garbage collector closes what nobody has
)

// claim binds an abstract name, which goes with the process, whatever becomes of that.
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
