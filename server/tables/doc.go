// Package tables defines how lists show each kind: the fields that agents project into an
// object's summary, and the columns of kubectl, computed from the summary only. The package
// does not decode bodies and does no input or output, so the command line and the dashboard
// show the same text.
//
// The projections are sent to agents, so a newer server shows more without newer agents.
package tables
