package main

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/vedette-io/vedette/server/config"
)

// minAgentMemory is what agents may make the server hold however little memory there
// is, in bytes: about a hundred that send changes at the same time.
const minAgentMemory = 128 << 20

// agentMemory returns how many bytes agents may make the server hold. Each agent that
// sends changes takes one MiB, so that a fixed number would be too small for a large
// fleet, or too large for a small machine.
func agentMemory(cfg config.Agents, available uint64) int64 {
	if cfg.MemoryBytes != 0 {
		return int64(cfg.MemoryBytes)
	}
	return max(minAgentMemory, int64(min(available, math.MaxInt64)/4))
}

// availableMemory returns the memory that this process may use, in bytes: the least of
// Go's own limit (GOMEMLIMIT), its container's and the machine's.
func availableMemory() uint64 {
	available := uint64(debug.SetMemoryLimit(-1))
	for _, limit := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if bytes, err := limit(); err == nil && bytes > 0 { // an error says that there is no limit
			available = min(available, bytes)
		}
	}
	return available
}
