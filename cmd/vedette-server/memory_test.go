package main

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/vedette-io/vedette/server/config"
)

func TestAgentsGetAFifthOfMemory(t *testing.T) {
	for _, tt := range []struct {
		name       string
		configured int64
		available  uint64
		want       int64
	}{
		{"the configured value", 200 << 20, 64 << 30, 200 << 20},
		{"by default a fifth of the available memory", 0, 10 << 30, 2 << 30},
		{"at least enough for the largest object", 0, 256 << 20, 80 << 20},
		{"no limit at all", 0, math.MaxUint64, math.MaxInt64 / 5},
	} {
		if got := agentMemory(config.Agents{MemoryBytes: tt.configured}, tt.available); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestAvailableMemoryRespectsGOMEMLIMIT(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(300 << 20))
	if got := availableMemory(); got == 0 || got > 300<<20 {
		t.Errorf("got %d bytes, want at most the limit of 300 MiB", got)
	}
}
