package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette/agent/lifecycle"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/wire"
)

// errorServer is a server that records account errors.
type errorServer struct {
	wire.UnimplementedCachingServer
	errors chan *wire.AccountError
}

func (s errorServer) Connect(stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	welcome := &wire.Welcome{Protocol: wire.NewestProtocol, HeartbeatSeconds: 60, CreditBytes: 1 << 20}
	if err := stream.Send(&wire.ServerMessage{Message: &wire.ServerMessage_Welcome{Welcome: welcome}}); err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if e := m.GetAccountError(); e != nil {
			s.errors <- e
		}
	}
}

// TestRefusalEndsErrors checks that the server does not go on showing what was wrong with an account before it refused it.
func TestRefusalEndsErrors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan *wire.AccountError, 10)
	srv := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec()))
	wire.RegisterCachingServer(srv, errorServer{errors: received})
	go func() { _ = srv.Serve(listener) }()
	t.Cleanup(srv.Stop)
	a := New(Config{Uplink: uplink.Config{Target: "passthrough:///" + listener.Addr().String(), Creds: insecure.NewCredentials(), Agent: "a"}},
		slog.New(slog.DiscardHandler))
	prod := newAccount(a, Account{Name: "prod"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.link.Run(ctx) }()
	defer func() {
		cancel()
		<-done
	}()
	expect := func(message string) {
		t.Helper()
		select {
		case got := <-received:
			if got.GetMessage() != message {
				t.Errorf("got error %q, want %q", got.GetMessage(), message)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("got no message about the error %q", message)
		}
	}
	prod.setState(lifecycle.Reaching, errors.New("no route"))
	expect("no route")
	prod.setState(lifecycle.Refused, errors.New("another cluster has the name"))
	expect("")
}
