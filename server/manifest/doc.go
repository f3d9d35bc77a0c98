// Package manifest changes manifests on their way to a cluster, and some that come back, as
// Clouddriver's Kubernetes provider does: it expands lists, sorts by kind, binds artifacts,
// assigns versions, and adds annotations and labels.
//
// The package does no input or output. Deployments query a Cluster, and return a Plan for the
// caller to execute. Invalid input is rejected with vedette.Invalid, in Clouddriver's words if
// it has any.
package manifest
