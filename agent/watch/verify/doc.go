// Package verify decides whether what a server stores of a feed equals what is in its cluster. It
// compares digests (see vedette.Digest) and does no I/O: package watch lists and asks.
//
// First, the digests of all objects are added up in buckets. If all sums are equal, so are the
// objects. Most verifications end here.
//
// Buckets that differ are examined, because a list and the store are hardly ever of the same moment.
// An object counts as drift only if no order of events explains what was seen. L1 and L2 are
// resourceVersions of two lists, and M1 and M2 what the feed had reached when the server answered
// after each of them, with L1 ≤ M1 ≤ L2 ≤ M2:
//
//   - A digest that is in both lists existed from L1 to L2, so also at M1. If the server did not have
//     it at M1, nor at M2, it is missing.
//   - A digest that the server had at M1 and at M2, and that is in neither list, was not created
//     after L2, because the server had it before. So it was gone at L2, and should be gone at M2. It
//     is left over.
//
// Less formally: objects that change all the time are never drift, because each version is seen
// once. What is seen twice and should not be there is.
package verify
