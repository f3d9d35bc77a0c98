// Package web holds what all families of endpoints of Clouddriver's API share: how Clouddriver matches paths, reads
// parameters, writes manifests, monikers and errors, and what a request may take of the server's memory.
package web
