// Package ports gives programs that tests start ports to listen on.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken from below those that the kernel picks itself, for connections and
// for whoever listens on port 0: one of these may be anybody's by the time that a
// program has started, or started again.
const firstPort, lastPort = 20_000, 32_000

// Reserve returns a TCP port of 127.0.0.1 that nobody listens on, and that no other
// Reserve, of whichever process, returns while this process lives.
func Reserve() (int, error) {
	var errs []error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		err := claim(port)
		if err == nil {
			err = listen(port)
		}
		if err == nil {
			return port, nil
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("find a free port between %d and %d: %w", firstPort, lastPort, errors.Join(errs...))
}

func listen(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return l.Close()
}
