// Package apistub serves objects that were recorded in a cluster, as the cluster's API server
// would: discovery, lists with pages, gets, and watches that report no change.
//
// Tests compare with it what Vedette answers about a recorded cluster with what another program
// answered about the same cluster. Uids and times are those of the recording, which no real API
// server would accept.
//
// The objects never change: writes are rejected. Kinds of Kubernetes 1.36 exist even if no object
// of them was recorded; custom resources exist if their CustomResourceDefinition was recorded.
// There are no logs and no metrics, and nobody is forbidden anything.
package apistub
