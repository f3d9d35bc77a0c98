// Package standin is a small Clouddriver for tests: an HTTP server over a list of accounts and a list of
// Kubernetes objects, from which it derives what Clouddriver answers about accounts, applications, clusters,
// server groups, load balancers and manifests. It runs operations by writing them into a log.
//
// Answers have the form that a Clouddriver 5.95 gives. Everything that the stand-in says about an object
// has the label AnsweredBy, so that a test sees which of two servers has answered.
//
// The state can change while the server runs, and Misbehave makes it answer as a broken Clouddriver or a
// broken proxy before it would.
//
// With SetPlugin, it has the endpoints of the Scale Agent plugin that say which agents, operations and replicas there are.
//
// Two simplifications: an object belongs to an application only if it has Spinnaker's annotations, and the
// only server groups are ReplicaSets.
package standin
