// Package peerproto has the messages between servers, generated from its .proto files. Operations and outcomes are those of package wire.
package peerproto

//go:generate sh -c "cd ../../.. && go tool -modfile=tools/go.mod buf generate server/peer/peerproto --template buf.gen.peer.yaml"
