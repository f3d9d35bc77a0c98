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

// answerServer is an Operations server whose Answer is a function.
type answerServer struct {
	wire.UnimplementedOperationsServer
	answer func(grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error
}

func (s answerServer) Answer(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
	return s.answer(stream)
}

// forgetRecorder records calls of Forget.
type forgetRecorder struct {
	executor
	forgotten chan vedette.OperationID
}

func (f forgetRecorder) Forget(id vedette.OperationID) { f.forgotten <- id }

// endlessLog is a log without end.
type endlessLog struct{}

func (endlessLog) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(time.Now().UnixNano()>>(i%13)) ^ byte(i*i)
	}
	return len(b), nil
}

// withOperationStream calls test with an operationStream that is connected to a server.
func withOperationStream(t *testing.T, answer func(grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error, test func(*operationStream, forgetRecorder)) {
	synctest.Test(t, func(t *testing.T) {
		listen := bufconn.Listen(1 << 16)
		srv := grpc.NewServer(grpc.ForceServerCodecV2(wire.Codec()))
		wire.RegisterOperationsServer(srv, answerServer{answer: answer})
		go func() { _ = srv.Serve(listen) }()
		conn, err := grpc.NewClient("passthrough:///server", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listen.Dial() }))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		recorder := forgetRecorder{forgotten: make(chan vedette.OperationID, 1)}
		o := &operationStream{uplink: &Uplink{log: slog.New(slog.DiscardHandler), executor: recorder}, client: wire.NewOperationsClient(conn), ctx: ctx}
		test(o, recorder)
		cancel()
		o.close()
		_ = conn.Close()
		srv.Stop()
	})
}

// TestUnreadLogIsClosed checks that a log is closed if the server does not receive it, and
// stays open while the log itself is silent.
func TestUnreadLogIsClosed(t *testing.T) {
	stalled := func(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
		<-stream.Context().Done()
		return nil
	}
	withOperationStream(t, stalled, func(o *operationStream, recorder forgetRecorder) {
		began := time.Now()
		o.answer(vedette.Outcome{ID: "log", Stream: io.NopCloser(endlessLog{})})
		if id := <-recorder.forgotten; id != "log" || time.Since(began) != logSendTimeout {
			t.Errorf("got %s forgotten after %v, want log after %v", id, time.Since(began), logSendTimeout)
		}
	})
	reading := func(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
		for {
			if _, err := stream.Recv(); err != nil {
				return stream.SendAndClose(&wire.AnswerEnd{})
			}
		}
	}
	withOperationStream(t, reading, func(o *operationStream, recorder forgetRecorder) {
		out, in := io.Pipe()
		o.answer(vedette.Outcome{ID: "log", Stream: out})
		for range 10 {
			time.Sleep(time.Hour)
			if _, err := in.Write([]byte("a line\n")); err != nil {
				t.Fatalf("silent log: got error %v, want it open", err)
			}
		}
		_ = in.Close()
		if id := <-recorder.forgotten; id != "log" {
			t.Errorf("got %s forgotten, want log", id)
		}
	})
}
