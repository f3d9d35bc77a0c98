//go:build !race

package watch_test

const raceMemoryFactor = 1
