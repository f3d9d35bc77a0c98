// Package journey tests both halves together: from a real cluster to the store
// and its readers.
package journey
