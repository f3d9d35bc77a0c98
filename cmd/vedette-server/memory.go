package main

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/vedette-io/vedette/server/config"
)

// minAgentMemory is the least memory for agents, in bytes. It is enough for the largest object, or for about
// eighty agents that send changes at the same time.
const minAgentMemory = 80 << 20

// agentMemory returns how many bytes of memory agents may use in the server. The default
// depends on the available memory, because each agent that sends changes uses 1 MiB: a fixed
// number would be too small for a large fleet, or too large for a small machine.
func agentMemory(cfg config.Agents, available uint64) int64 {
	if cfg.MemoryBytes != 0 {
		return cfg.MemoryBytes
	}
	return max(minAgentMemory, int64(min(available, math.MaxInt64)/5))
}

// availableMemory returns the memory that this process may use, in bytes: the lowest of
// GOMEMLIMIT, the limit of the container, and the memory of the machine.
func availableMemory() uint64 {
	available := uint64(debug.SetMemoryLimit(-1))
	for _, limit := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if bytes, err := limit(); err == nil && bytes > 0 { // an error means that there is no limit
			available = min(available, bytes)
		}
	}
	return available
}
