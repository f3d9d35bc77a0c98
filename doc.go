// Package vedette holds the nouns that every part of the product shares (an
// account, a kind, an object, a feed, a mark, an error that may be shown) and
// the pure rules on them. It imports nothing of ours, does no input or output
// and starts no goroutine, so that agent and server can agree on it without
// knowing each other.
package vedette
