// Package overlay lets callers read their own writes although feeds are late. An operation's
// result is stored before the feed reports it; until the feed has caught up, the overlay
// keeps older changes of the feed away from what the operation wrote. Decision 18 explains
// the rules.
//
// There are two kinds of facts about an object. A floor says that the cluster had the object at
// a resourceVersion: older changes are stale. A tombstone says that the object with a uid is
// gone: all changes of that uid are stale. Write and Remove record them, Filter applies
// them to a batch, and Settle keeps what is left of them once the batch is stored.
package overlay
