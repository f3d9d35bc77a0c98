// Package differential applies random sequences of manifests twice: with kubectl, and with an
// agent's operator. After each step the two live objects must be equal.
//
// A sequence is the life of one object: applies, client-side or server-side, of manifests that
// change a little from step to step; changes by other field managers; scaling; deletions. It
// depends only on its seed. All sequences of a batch take their steps together, because then a step
// needs a few kubectl processes, and not a few for each object.
//
// kubectl is the reference, except for the differences in docs/decisions: see isExempt in
// run_test.go and normalize in compare_test.go.
package differential
