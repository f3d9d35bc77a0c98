//go:build !race

package watch_test

const overhead = 1
