// Package apply computes what an apply sends: whether the client or the API server merges, the
// three-way merge of a client-side apply, and the patches that move fields to the manager of
// server-side applies. Field managers and annotations are those of kubectl, so that objects can be
// applied by both in turn.
//
// It computes patches from values and sends no requests; package operate sends them.
//
// An interface with which the package sends requests itself was considered. It would need conflicts, retries, redaction and
// lost answers on both sides of the interface.
package apply
