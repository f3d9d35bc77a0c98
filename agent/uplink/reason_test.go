package uplink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestEachErrorHasADisconnectReason(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, "stopped"},
		{context.Canceled, "stopped"},
		{fmt.Errorf("%w: update", errDrain), "drain"},
		{errHeartbeatTimeout, "heartbeat"},
		{errHandshakeTimeout, "handshake"},
		{io.EOF, "closed"},
		{status.Error(codes.Unavailable, "connection refused"), "Unavailable"},
		{fmt.Errorf("receive operations: %w", status.Error(codes.PermissionDenied, "no")), "PermissionDenied"},
		{status.Error(codes.Code(4711), "a code that a hostile server chose"), "Unknown"},
		{errors.New("anything else"), "Unknown"},
	} {
		if got := disconnectReason(tt.err); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.err, got, tt.want)
		}
	}
}
