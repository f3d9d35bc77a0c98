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
// A task runs on the server that accepted it. If that server is lost, another one ends the
// task and reports what was done. No task runs twice.
package task
