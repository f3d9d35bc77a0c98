// Package manifest is what happens to manifests on their way to a cluster, and
// to a few that come back, in the way that Clouddriver's Kubernetes provider has
// it: lists are taken apart, kinds are put in order, artifacts are bound,
// versions are given, annotations and labels are written.
//
// It does no input or output. What a deployment must know of the cluster it asks
// a Cluster, and what is to be done there is a Plan for the caller to carry out.
// Refused input is a vedette.Invalid with Clouddriver's own words where it has
// some.
package manifest
