// Package watch follows the kinds of one cluster and reports every change as bytes, in
// order, per feed.
//
// An object passes through as the JSON that the API server sent. It is never decoded
// into Go values and never kept: a splitter finds where it begins and ends in a read
// buffer, the sink copies it from there, and the next object overwrites it. So memory
// does not grow with the number of objects. A sink that blocks stops the reading, and
// HTTP/2's flow control then holds back the API server.
//
// Guarantees:
//
//   - A feed with a mark continues from it with a watch, without a list.
//   - An object that a snapshot does not name between its Begin and its End was not in
//     the cluster at the mark of the End. A snapshot may name an object twice.
//   - A mark comes after everything that it covers.
//   - No kind, group or object can make another feed stop.
//   - A feed that differs from its cluster without knowing is found by its verification (see
//     package verify), and read anew.
//   - The data of a Secret is not requested, and is rejected if it comes anyway.
//
// Package lifecycle decides what a feed does next, package queue when it may list, package evidence up to when it is
// complete, and package verify whether it equals its cluster.
//
// Less formally: a lost connection costs a request, an expired mark costs a list, and
// anything that cannot be understood costs a message and a retry.
package watch
