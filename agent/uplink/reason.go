package uplink

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// disconnectReason returns why a connection ended, as one of few words, for metrics.
func disconnectReason(err error) string {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return "stopped"
	case errors.Is(err, errDrain):
		return "drain"
	case errors.Is(err, errHeartbeatTimeout):
		return "heartbeat"
	case errors.Is(err, errHandshakeTimeout):
		return "handshake"
	case errors.Is(err, io.EOF):
		return "closed"
	}
	if code := status.Code(err); code <= codes.Unauthenticated { // the server may send any number
		return code.String()
	}
	return codes.Unknown.String()
}
