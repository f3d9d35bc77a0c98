// Package views knows what lists show of each kind: which fields agents lift
// into an object's summary, and the columns that kubectl users expect, computed
// from that summary alone. It opens no bodies and does no input or output, so
// that the command line and the dashboard show the same words.
package views
