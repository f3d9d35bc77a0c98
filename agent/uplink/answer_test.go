package uplink

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// server takes answers as a test wants.
type server struct {
	wire.UnimplementedOperationsServer
	answer func(grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error
}

func (s server) Answer(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
	return s.answer(stream)
}

// forgetful notes what may be forgotten.
type forgetful struct {
	desk
	forgotten chan vedette.OperationID
}

func (f forgetful) Forget(id vedette.OperationID) { f.forgotten <- id }

// noise is a log that does not end.
type noise struct{}

func (noise) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(time.Now().UnixNano()>>(i%13)) ^ byte(i*i)
	}
	return len(b), nil
}

// answering calls test with the operations of an agent that is connected to a server.
func answering(t *testing.T, answer func(grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error, test func(*operations, forgetful)) {
	synctest.Test(t, func(t *testing.T) {
		listen := bufconn.Listen(1 << 16)
		srv := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec()))
		wire.RegisterOperationsServer(srv, server{answer: answer})
		go func() { _ = srv.Serve(listen) }()
		conn, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listen.Dial() }))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		d := forgetful{forgotten: make(chan vedette.OperationID, 1)}
		o := &operations{uplink: &Uplink{log: slog.New(slog.DiscardHandler), desk: d}, client: wire.NewOperationsClient(conn), ctx: ctx}
		test(o, d)
		cancel()
		o.end()
		_ = conn.Close()
		srv.Stop()
	})
}

// TestALogThatNobodyTakes holds that a log gives its room back when the server takes
// nothing of it, and keeps it while the log has nothing to say.
func TestALogThatNobodyTakes(t *testing.T) {
	frozen := func(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
		<-stream.Context().Done()
		return nil
	}
	answering(t, frozen, func(o *operations, d forgetful) {
		began := time.Now()
		o.answer(vedette.Outcome{ID: "log", Stream: io.NopCloser(noise{})})
		if id := <-d.forgotten; id != "log" || time.Since(began) != logPatience {
			t.Errorf("%s is forgotten after %v, want %v", id, time.Since(began), logPatience)
		}
	})
	takes := func(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
		for {
			if _, err := stream.Recv(); err != nil {
				return stream.SendAndClose(&wire.AnswerEnd{})
			}
		}
	}
	answering(t, takes, func(o *operations, d forgetful) {
		out, in := io.Pipe()
		o.answer(vedette.Outcome{ID: "log", Stream: out})
		for range 10 {
			time.Sleep(time.Hour)
			if _, err := in.Write([]byte("a line\n")); err != nil {
				t.Fatalf("a log that was silent is closed: %v", err)
			}
		}
		_ = in.Close()
		if id := <-d.forgotten; id != "log" {
			t.Error(id)
		}
	})
}
