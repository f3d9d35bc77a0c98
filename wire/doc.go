// Package wire is the protocol between agent and server: its messages (vedette.proto),
// the record stream in Data messages, and the conversion between messages and the types
// of package vedette. It opens no connections.
package wire

//go:generate go run ./internal/argsproto
//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod buf generate"
