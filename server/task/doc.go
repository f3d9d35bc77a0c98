// Package task runs tasks: operations of Spinnaker's Kubernetes provider, from their
// submission until some days after their end, when they are deleted. It validates the
// descriptions before it accepts a task, executes the operations one after the other, and
// reports progress in Clouddriver's words.
//
// The package executes vedette.Operations with a dispatcher, and does not know agents.
// Submitted descriptions are in memory only while the task runs. They are never stored or
// logged, because they can contain Secrets. The history and the results are stored, Secrets
// without their data.
//
// A task runs on the server that accepted it. If several servers share the database, another one has a copy in its
// memory, and goes on with the task when the first one has ended or stops:
//
//	Submit ── copier ══frames══> HeldCopy ── server ends ──> newContinuedRun ── journal ──> the step that was in progress
//
// docs/decisions/0195 has the rules. A task of which nobody has a copy is ended by another server, which reports what was done. No
// step takes effect twice.
package task
