// Package vedette has the types that every part of the product shares (for example
// account, kind, object, feed, mark and operation) and pure rules on them. It imports
// no other package of the product, does no I/O and starts no goroutines, so that agent
// and server can share it without depending on each other.
package vedette
