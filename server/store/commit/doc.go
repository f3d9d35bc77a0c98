// Package commit has what a commit to the store gets and returns: a batch of changes of one account, with the marks that its feeds
// reach, and what became of it. Callers, package write and package writethrough share these types, so that nobody converts them.
package commit
