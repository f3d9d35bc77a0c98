// Package ports reserves ports for programs that tests start.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports are below those that the kernel chooses for connections and for listeners on port 0,
// because another program could get one of these before a program is started or restarted.
const firstPort, lastPort = 20_000, 32_000

// Reserve returns a TCP port of 127.0.0.1 on which no program listens, and which no other Reserve
// in any process returns while this process runs.
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
