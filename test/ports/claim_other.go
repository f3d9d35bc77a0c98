//go:build !linux

package ports

import (
	"errors"
	"sync"
)

var (
	mu    sync.Mutex
	taken = map[int]bool{}
)

// claim keeps a port from this process alone.
func claim(port int) error {
	mu.Lock()
	defer mu.Unlock()
	if taken[port] {
		return errors.New("taken before")
	}
	taken[port] = true
	return nil
}
