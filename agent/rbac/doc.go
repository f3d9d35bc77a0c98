// Package rbac determines which RBAC rules an account needs in its cluster, asks the API server
// which of them are missing, and prints them as manifests.
package rbac
