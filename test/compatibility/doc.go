// Package compatibility runs a server and an agent of this module as they would run behind a
// Spinnaker, for comparisons with what Clouddriver answered about the same cluster.
//
// The cluster is either a recording (package apistub) or a real control plane. The accounts are those
// that the recorded Clouddriver had.
package compatibility
