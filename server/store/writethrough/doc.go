// Package writethrough lets callers read their own writes although feeds are late. An operation's
// result is stored before the feed reports it; until the feed has caught up, State
// keeps older changes of the feed away from what the operation wrote. A result may
// come before or long after the feed's report of it, and the feed may report older versions before.
//
// Of an object it may know a floor or a tombstone. A floor says that the cluster had the object at
// a resourceVersion, or had nothing of the name: older changes are stale. A tombstone says that the object with a uid is
// gone: all changes of that uid are stale. Write, Remove and RemoveAbsent record them, Filter applies
// them to a batch, and Settle keeps what is left of them once the batch is stored.
//
// What is left out must be reported again, or it would never be seen. Therefore:
//
//   - Older versions are left out, upserts and deletions alike. Versions that are not decimal numbers are not compared: such an
//     object is left to its feed.
//   - Marks end floors, and no timeout does, which would be too early for a slow agent or too late for memory: a feed that is
//     stored up to a mark at or after the floor reports nothing older. Until then, the watch is sure to report the floor's
//     version or a newer one.
//   - A result that arrives after its feed has passed it brings nothing back. If nothing is stored, the object is gone, or
//     changed again and that change is on its way. The two cannot be told apart without a list of deleted objects.
//   - Snapshots also report by omission. What is written through after the index was read is in no index, and no drop can name
//     it. What is in the index and was written after the list was read is named in a drop although it exists. Both are decided
//     when the snapshot ends: if it was read at or after the floor's version, the snapshot is right; otherwise the watch will
//     be. For this, the end of a snapshot is kept separate from the feed's mark, which may be further on in the same batch.
//   - A feed that is read anew, as after a restore of etcd, forgets what is known of its objects, because that may be about the
//     state before. Agents hold outcomes back while such a snapshot begins (agent/watch.Watcher.AwaitBegin), so that what comes
//     afterwards is of the state that is read, or newer.
//   - An operation that finds nothing to delete says at which version that was. What is stored of that version or an older one
//     is removed, whatever its uid is, and nothing older is stored. Without a version or a uid nothing is removed.
//
// A server that takes over an account does not know the floors of the one before. It derives them (see State.Filter): the
// object is stored in a newer version than its feed has reached. Tombstones are stored for TombstoneTTL in the
// transaction that removes the object, because nothing else remains of it (docs/decisions/0200). The suite in
// storetest runs this against a cluster with a history, and an agent that lags, merges, disconnects and lists again, with
// results in any order: no object goes back or vanishes, and once everything is reported the store equals the cluster.
package writethrough
