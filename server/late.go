package server

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette/wire"
)

// lateGate is the gate as gRPC knows it from the start, so that health is told while
// the store is being opened. Agents that come before the gate is there wait for it.
type lateGate struct {
	wire.UnimplementedCachingServer
	there      chan struct{} // closed by bind
	once       sync.Once
	caching    wire.CachingServer
	operations wire.OperationsServer
}

func newLateGate() *lateGate { return &lateGate{there: make(chan struct{})} }

// register adds the gate's services to a gRPC server.
func (l *lateGate) register(srv *grpc.Server) {
	wire.RegisterCachingServer(srv, l)
	wire.RegisterOperationsServer(srv, lateOperations{lateGate: l})
}

// bind lets agents in, to what serve registers.
func (l *lateGate) bind(serve func(grpc.ServiceRegistrar)) {
	l.once.Do(func() {
		serve(l)
		close(l.there)
	})
}

// RegisterService implements grpc.ServiceRegistrar for the gate itself.
func (l *lateGate) RegisterService(desc *grpc.ServiceDesc, service any) {
	switch desc.ServiceName {
	case wire.Caching_ServiceDesc.ServiceName:
		l.caching = service.(wire.CachingServer)
	case wire.Operations_ServiceDesc.ServiceName:
		l.operations = service.(wire.OperationsServer)
	default:
		panic("the gate has a service that agents could not reach: " + desc.ServiceName)
	}
}

// wait waits until the gate is there.
func (l *lateGate) wait(ctx context.Context) error {
	select {
	case <-l.there:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Connect implements wire.CachingServer.
func (l *lateGate) Connect(stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) error {
	if err := l.wait(stream.Context()); err != nil {
		return err
	}
	return l.caching.Connect(stream)
}

type lateOperations struct {
	wire.UnimplementedOperationsServer
	*lateGate
}

// Serve implements wire.OperationsServer.
func (l lateOperations) Serve(stream grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]) error {
	if err := l.wait(stream.Context()); err != nil {
		return err
	}
	return l.operations.Serve(stream)
}

// Answer implements wire.OperationsServer.
func (l lateOperations) Answer(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
	if err := l.wait(stream.Context()); err != nil {
		return err
	}
	return l.operations.Answer(stream)
}
