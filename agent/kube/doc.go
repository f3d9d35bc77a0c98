// Package kube is the client of one API server. Watches and operations share it.
//
// A [Cluster] holds the credentials (a kubeconfig, a service account or an exec
// plugin), the transports and the discovery of one cluster. It knows four kinds of
// connections, because a response that stops must not block others:
//
//   - lists and discovery (Get), whose response ends soon;
//   - watches and logs (Watch, Stream), up to 40 streams per connection;
//   - requests that people wait for (Do);
//   - Secrets (WipeBuffers), each request over a connection of its own, whose buffers
//     are zeroed.
//
// Errors explain what failed, at which address, and what to do.
package kube
