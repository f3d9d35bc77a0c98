// Package watch follows one cluster's kinds and tells every change as bytes, in
// order, per feed.
//
// An object passes through here as the JSON that the API server sent. It is
// never decoded into Go values and never kept: a splitter finds where it begins
// and ends in a read buffer, the sink takes it from there, and the next object
// is written over it. So the memory of a cluster does not grow with what is in
// it, and a sink that blocks stops the reading: HTTP/2's windows then hold the
// API server back.
//
// Guarantees:
//
//   - A feed that has a mark goes on from it by watching, without a list.
//   - What a snapshot did not name between its Begin and its End was not in the
//     cluster at the mark of the End. It may name an object twice.
//   - Marks come after all that they cover.
//   - No kind, group or object can make another feed stop.
//   - The data of a Secret is not asked for, and is refused where it comes anyway.
//
// Less formally: losing a connection costs a request, a forgotten mark costs a
// list, and anything that cannot be understood costs a message and a second try.
package watch
