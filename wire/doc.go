// Package wire is the language between agent and server: its messages
// (vedette.proto), the record stream that Data messages carry, and the mapping
// between wire and domain types. It dials nothing and listens on nothing.
package wire

//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod buf generate"
