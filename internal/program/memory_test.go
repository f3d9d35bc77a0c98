package program

import (
	"errors"
	"log/slog"
	"math"
	"runtime/debug"
	"testing"
)

// TestMemoryIsLimited checks that Go collects garbage before the system ends the program.
func TestMemoryIsLimited(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, tt := range []struct {
		name, variable string
		container      uint64
		err            error
		want           int64
	}{
		{"a small container", "", 160 << 20, nil, 120 << 20},
		{"a container", "", 500 << 20, nil, 400 << 20},
		{"a large container", "", 4 << 30, nil, 4<<30 - 256<<20},
		{"a variable", "100MiB", 500 << 20, nil, math.MaxInt64},
		{"no container", "", 0, errors.New("no limit"), math.MaxInt64},
		{"a container without a limit", "", math.MaxUint64, nil, math.MaxInt64},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		lookup := func(string) (string, bool) { return tt.variable, tt.variable != "" }
		limitMemory(slog.New(slog.DiscardHandler), lookup, func() (uint64, error) { return tt.container, tt.err })
		if got := debug.SetMemoryLimit(-1); got != tt.want {
			t.Errorf("%s: got a limit of %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}
