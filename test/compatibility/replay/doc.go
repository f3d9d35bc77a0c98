// Package replay sends what Spinnaker's services sent to a Clouddriver, and checks that a server of
// ours answers as was recorded.
//
// What follows from a recording is the status of each answer, how each task ended, and whether a list
// was empty. Ids, times and generated names differ with each run.
package replay
