package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/peer/peerproto"
	tasksstore "github.com/vedette-io/vedette/server/store/tasks"
	"github.com/vedette-io/vedette/server/task"
)

// tasks are those that run at this server, and the copies of those of others.
type tasks interface {
	NewCopy(from vedette.ServerID, process string) (*task.HeldCopy, error)
	RunningBody(id string) ([]byte, error)
	CancelRunning(ctx context.Context, id string, retryable bool) error
}

// taskServer answers servers that ask for tasks.
type taskServer struct {
	peerproto.UnimplementedTasksServer
	server *Server
	tasks  tasks
}

// SetTasks makes the server answer about the tasks of t, and keep copies there. Call it before Serve.
func (s *Server) SetTasks(t *task.Tasks) { s.tasks = &taskServer{server: s, tasks: t} }

const (
	// maxTaskPiece is the size of a message with a part of a task.
	maxTaskPiece = 256 << 10
	// maxCopyFrame bounds a frame of a copy: a description, or the answer of a cluster.
	maxCopyFrame = 128 << 20
)

// Copy implements peerproto.TasksServer.
func (t *taskServer) Copy(stream grpc.BidiStreamingServer[peerproto.CopyUp, peerproto.CopyDown]) error {
	caller, err := t.server.caller(stream.Context())
	if err != nil {
		return err
	}
	held, err := t.tasks.NewCopy(caller.ID, caller.Process)
	if err != nil {
		return statusOf(err)
	}
	defer held.Close()
	for taken := uint64(1); !held.IsEnded(); taken++ {
		frame, err := receiveFrame(stream, held)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := t.server.caller(stream.Context()); err != nil { // it may have been evicted meanwhile
			return err
		}
		if err := held.Take(stream.Context(), frame); err != nil {
			return statusOf(err)
		}
		if err := stream.Send(&peerproto.CopyDown{Taken: taken}); err != nil {
			return err
		}
	}
	return nil
}

// receiveFrame returns the next frame. Its memory is reserved when its first part has arrived.
func receiveFrame(stream grpc.BidiStreamingServer[peerproto.CopyUp, peerproto.CopyDown], held *task.HeldCopy) ([]byte, error) {
	m, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	size := m.GetSize()
	if size == 0 || size > maxCopyFrame {
		return nil, status.Errorf(codes.InvalidArgument, "a frame of %d bytes", size)
	}
	if err := held.Reserve(stream.Context(), int64(size)); err != nil {
		return nil, statusOf(err)
	}
	var frame bytes.Buffer
	frame.Grow(len(m.GetContent()))
	for {
		frame.Write(m.GetContent())
		switch {
		case uint64(frame.Len()) > size, !m.GetContinues() && uint64(frame.Len()) < size: //nolint:gosec // not negative
			return nil, status.Errorf(codes.InvalidArgument, "a frame does not have the %d bytes that it announced", size)
		case !m.GetContinues():
			return frame.Bytes(), nil
		}
		if m, err = stream.Recv(); err != nil {
			return nil, err
		}
	}
}

// Task implements peerproto.TasksServer.
func (t *taskServer) Task(r *peerproto.TaskRequest, stream grpc.ServerStreamingServer[peerproto.TaskPiece]) error {
	if _, err := t.server.caller(stream.Context()); err != nil {
		return err
	}
	body, err := t.tasks.RunningBody(r.GetId())
	if err != nil {
		return statusOf(err)
	}
	for len(body) > 0 {
		n := min(len(body), maxTaskPiece)
		if err := stream.Send(&peerproto.TaskPiece{Content: body[:n]}); err != nil {
			return err
		}
		body = body[n:]
	}
	return nil
}

// Cancel implements peerproto.TasksServer.
func (t *taskServer) Cancel(ctx context.Context, r *peerproto.CancelTaskRequest) (*peerproto.CancelTaskResponse, error) {
	if _, err := t.server.caller(ctx); err != nil {
		return nil, err
	}
	if err := t.tasks.CancelRunning(ctx, r.GetId(), r.GetRetryable()); err != nil {
		return nil, statusOf(err)
	}
	return &peerproto.CancelTaskResponse{}, nil
}

// statusOf returns an error of tasks for another server.
func statusOf(err error) error {
	switch vedette.KindOf(err) {
	case vedette.NotFound:
		return status.Error(codes.NotFound, err.Error())
	case vedette.Invalid:
		return status.Error(codes.InvalidArgument, err.Error())
	case vedette.Conflict:
		return status.Error(codes.FailedPrecondition, err.Error())
	case vedette.Unavailable:
		return status.Error(codes.Unavailable, err.Error())
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err).Err() //nolint:wrapcheck // gRPC needs its own errors
	}
	return status.Error(codes.Internal, "internal error, see the log of this server")
}

// tasksClient returns what calls the tasks of a server.
func (c *Client) tasksClient(server vedette.ServerID) (peerproto.TasksClient, error) {
	p, ok := c.cfg.Members.Peer(server)
	if !ok {
		return nil, notRunning(server)
	}
	conn, err := c.conn(p)
	if err != nil {
		return nil, err
	}
	return peerproto.NewTasksClient(conn), nil
}

// CopyTask implements task.Peers.
func (c *Client) CopyTask(ctx context.Context, to vedette.ServerID) (task.CopyStream, error) {
	client, err := c.tasksClient(to)
	if err != nil {
		return nil, err
	}
	stream, err := client.Copy(ctx)
	if err != nil {
		return nil, fmt.Errorf("copy a task to server %s: %w", to, err)
	}
	return copyStream{stream}, nil
}

// copyStream implements task.CopyStream.
type copyStream struct {
	grpc.BidiStreamingClient[peerproto.CopyUp, peerproto.CopyDown]
}

// Send implements task.CopyStream.
func (s copyStream) Send(frame []byte) error {
	m := &peerproto.CopyUp{Size: uint64(len(frame))}
	for {
		n := min(len(frame), maxTaskPiece)
		m.Content, frame = frame[:n], frame[n:]
		m.Continues = len(frame) > 0
		if err := s.BidiStreamingClient.Send(m); err != nil {
			return err
		}
		if !m.Continues {
			return nil
		}
		m = &peerproto.CopyUp{}
	}
}

// Receive implements task.CopyStream.
func (s copyStream) Receive() (taken uint64, err error) {
	m, err := s.Recv()
	return m.GetTaken(), err
}

// Task implements task.Peers.
func (c *Client) Task(ctx context.Context, at vedette.ServerID, id string) ([]byte, error) {
	client, err := c.tasksClient(at)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Task(ctx, &peerproto.TaskRequest{Id: id})
	if err != nil {
		return nil, taskError(at, err)
	}
	var body []byte
	for {
		piece, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, taskError(at, err)
		case len(body)+len(piece.GetContent()) > tasksstore.MaxBytes:
			return nil, vedette.Errorf(vedette.Unavailable, "task %.60q of server %s is larger than %d bytes", id, at, tasksstore.MaxBytes)
		}
		body = append(body, piece.GetContent()...)
	}
}

// CancelTask implements task.Peers.
func (c *Client) CancelTask(ctx context.Context, at vedette.ServerID, id string, retryable bool) error {
	client, err := c.tasksClient(at)
	if err != nil {
		return err
	}
	if _, err := client.Cancel(ctx, &peerproto.CancelTaskRequest{Id: id, Retryable: retryable}); err != nil {
		return taskError(at, err)
	}
	return nil
}

func taskError(at vedette.ServerID, err error) error {
	if status.Code(err) == codes.NotFound {
		return vedette.Errorf(vedette.NotFound, "the task does not run at server %s", at)
	}
	return vedette.Errorf(vedette.Unavailable, "ask server %s for a task: %s", at, status.Convert(err).Message())
}
