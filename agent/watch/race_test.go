//go:build race

package watch_test

// overhead is what the race detector makes of memory.
const overhead = 5
