// Package discover says which servers may exist: this one alone, those in the database's table of servers, or the pods behind some
// Services of a Kubernetes cluster.
//
// Whoever may write the Services' addresses, or answers for the API server, decides what is listed. So a listed server may not exist, and
// an address proves nothing: servers that call each other prove their keys. docs/decisions/0186 has the reasons.
//
//	Kubernetes   who may read what? -> list (whole, or nothing changes) -> watch -> a new snapshot after each change
//	SQL          the table, as another package keeps it in memory
//	Local        this server
package discover
