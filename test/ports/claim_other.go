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

// claim marks a port as used in this process only.
func claim(port int) error {
	mu.Lock()
	defer mu.Unlock()
	if claimed[port] {
		return errors.New("already claimed")
	}
	claimed[port] = true
	return nil
}
