// Package compare compares how two servers answer Clouddriver's API.
//
// An answer is a status and a JSON body. Most lists of Clouddriver have no order, so lists are
// compared as sets. Differences are grouped by the form of the path and by the field, because one
// fault shows in hundreds of answers. A difference is accepted if a rule in accepted.yaml gives a
// reason for it.
//
// One side may be a recording: a file with one answer per line. docs/decisions/0080 says why, and which differences
// may be accepted.
package compare
