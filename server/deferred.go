package server

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/vedette-io/vedette/wire"
)

// deferredAgentServer is registered with gRPC from the start, so that gRPC's health service can
// answer while the store is being opened. Agents that connect earlier than the agent server exists
// wait for it.
type deferredAgentServer struct {
	wire.UnimplementedCachingServer
	bound      chan struct{} // closed by bind
	once       sync.Once
	caching    wire.CachingServer
	operations wire.OperationsServer
}

func newDeferredAgentServer() *deferredAgentServer {
	return &deferredAgentServer{bound: make(chan struct{})}
}

// register adds the agent server's services to a gRPC server.
func (d *deferredAgentServer) register(srv *grpc.Server) {
	wire.RegisterCachingServer(srv, d)
	wire.RegisterOperationsServer(srv, deferredOperations{deferredAgentServer: d})
}

// bind sets the services that registerServices registers, and lets waiting agents continue.
func (d *deferredAgentServer) bind(registerServices func(grpc.ServiceRegistrar)) {
	d.once.Do(func() {
		registerServices(d)
		close(d.bound)
	})
}

// RegisterService implements grpc.ServiceRegistrar. bind passes d to the agent server, which
// registers its services here.
func (d *deferredAgentServer) RegisterService(desc *grpc.ServiceDesc, service any) {
	switch desc.ServiceName {
	case wire.Caching_ServiceDesc.ServiceName:
		d.caching = service.(wire.CachingServer)
	case wire.Operations_ServiceDesc.ServiceName:
		d.operations = service.(wire.OperationsServer)
	default:
		panic("agent server registers an unknown service: " + desc.ServiceName)
	}
}

// waitBound waits until bind was called.
func (d *deferredAgentServer) waitBound(ctx context.Context) error {
	select {
	case <-d.bound:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Connect implements wire.CachingServer.
func (d *deferredAgentServer) Connect(stream grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) error {
	if err := d.waitBound(stream.Context()); err != nil {
		return err
	}
	return d.caching.Connect(stream)
}

type deferredOperations struct {
	wire.UnimplementedOperationsServer
	*deferredAgentServer
}

// Serve implements wire.OperationsServer.
func (d deferredOperations) Serve(stream grpc.BidiStreamingServer[wire.OperationsUp, wire.OperationsDown]) error {
	if err := d.waitBound(stream.Context()); err != nil {
		return err
	}
	return d.operations.Serve(stream)
}

// Answer implements wire.OperationsServer.
func (d deferredOperations) Answer(stream grpc.ClientStreamingServer[wire.AnswerPiece, wire.AnswerEnd]) error {
	if err := d.waitBound(stream.Context()); err != nil {
		return err
	}
	return d.operations.Answer(stream)
}
