// Package journey tests agent and server together, from a real cluster to the store and its
// readers.
package journey
