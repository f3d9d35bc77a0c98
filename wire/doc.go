// Package wire is the protocol between agent and server: its messages (vedette.proto),
// the record stream in Data messages, and the conversion between messages and the types
// of package vedette. It opens no connections.
// docs/decisions/0003 says why records are one compressed stream, and docs/decisions/0022 why operations have streams of their own.
package wire

//go:generate go run ./internal/argsproto
//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod buf generate wire"
