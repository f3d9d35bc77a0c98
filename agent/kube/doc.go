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
//
// client-go does what is hard to get right and has no cost per object: kubeconfigs, TLS and authentication settings. Its
// informers, typed clients and exec authenticator are not used: informers keep every object, typed clients are 22 MB, and the
// exec authenticator has no time limit. In the agent, only this package has credentials and connections from it. It knows
// nothing of feeds or operations, so that a change to one of these cannot break the other.
package kube
