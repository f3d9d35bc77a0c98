//go:build race

package watch_test

// raceMemoryFactor is what the race detector makes of memory.
const raceMemoryFactor = 5
