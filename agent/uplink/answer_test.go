package uplink

import (
	"context"
	"encoding/json"
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
		o, recorder, end := connectOperationStream(t, answer)
		test(o, recorder)
		end()
	})
}

// connectOperationStream returns an operationStream that is connected to a server, and a function that ends the
// connection.
func connectOperationStream(t *testing.T, answer func(grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error) (o *operationStream,
	recorder forgetRecorder, end func()) {
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
	recorder = forgetRecorder{forgotten: make(chan vedette.OperationID, 2)}
	o = &operationStream{uplink: &Uplink{log: slog.New(slog.DiscardHandler), executor: recorder}, client: wire.NewOperationsClient(conn), ctx: ctx}
	return o, recorder, func() {
		cancel()
		o.close()
		_ = conn.Close()
		srv.Stop()
	}
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

// hungObjects are the objects of a cluster that does not answer, until the operation is forgotten.
type hungObjects struct{ forgotten <-chan vedette.OperationID }

// Next implements vedette.ObjectReader.
func (h hungObjects) Next() (json.RawMessage, error) {
	<-h.forgotten
	return nil, context.Canceled
}

// Failure implements vedette.ObjectReader.
func (hungObjects) Failure(err error) vedette.Outcome {
	return vedette.Outcome{State: vedette.Failed, Message: err.Error()}
}

// Close implements vedette.ObjectReader.
func (hungObjects) Close() {}

// TestHungListEndsWithItsConnection checks that an agent whose connection is lost does not wait for a
// cluster before it connects again.
func TestHungListEndsWithItsConnection(t *testing.T) {
	reading := func(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
		for {
			if _, err := stream.Recv(); err != nil {
				return err
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		o, recorder, end := connectOperationStream(t, reading)
		o.answer(vedette.Outcome{ID: "list", More: hungObjects{recorder.forgotten}})
		synctest.Wait()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			end()
		}()
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("the end of the connection waits for the list")
			recorder.forgotten <- "list" // the test must end
		}
	})
}
