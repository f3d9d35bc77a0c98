// Package differential applies random sequences of manifests twice: by kubectl, and by
// an agent's operator. After each step the two live objects must be the same.
//
// A sequence is the life of one object: applies, client-side or server-side, of
// manifests that change a little from step to step; changes by other field managers;
// scaling; deletions. It follows from its seed alone. All sequences of a batch take
// their steps together, so that a step costs a few processes of kubectl, and not a few
// for each object.
//
// kubectl is the oracle, but for the differences that docs/decisions names: see
// departs in run_test.go, and forget in compare_test.go.
package differential
