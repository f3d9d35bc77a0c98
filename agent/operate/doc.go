// Package operate carries out one operation against one cluster, to one
// outcome. There is a file per verb.
//
// What kubectl does by itself, on the way between a manifest and the API server,
// is done here as kubectl does it, with its field managers: an object that
// kubectl (and through it Clouddriver) wrote goes on to be theirs and ours alike,
// so that what a manifest no longer says disappears whoever wrote it.
//
// Guarantees:
//
//   - An operation ends by its deadline, in exactly one outcome.
//   - A failure carries the API server's own status, reason and whole text.
//   - What is tried again is a conflict on something that we read, throttling, and
//     a timeout of something idempotent. Nothing else is.
//   - A dry run changes nothing: every request of it that would says so to the API
//     server, and nothing of its answer is told as a feed would tell it.
//   - Secrets are asked for as metadata; what an outcome holds is redacted; no text
//     repeats the data of a Secret's manifest, and nothing of a manifest outlives
//     its operation.
package operate
