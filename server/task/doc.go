// Package task is the life of a task: operations of Spinnaker's Kubernetes
// provider, from the moment they are accepted until their end can be read for
// some days. It judges their descriptions before it accepts them, carries them
// out one after the other, and tells what happened in the words that
// Clouddriver has for it.
//
// It reaches clusters through whoever carries out vedette.Operations, and knows
// nothing of agents. What is submitted is held only while it runs: it is never
// stored nor logged, because it may hold a Secret. What is stored is the history
// and the results, Secrets without their data.
//
// A task runs in the server that accepted it. Where that server goes away
// another one ends the task and says what had been done; none is run twice.
package task
