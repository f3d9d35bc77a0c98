//go:build !linux

package ports

import (
	"errors"
	"sync"
)

var (
	mu      sync.Mutex
	claimed = map[int]bool{}
)

// claim keeps a port from this process alone.
func claim(port int) error {
	mu.Lock()
	defer mu.Unlock()
	if claimed[port] {
		return errors.New("taken before")
	}
	claimed[port] = true
	return nil
}
