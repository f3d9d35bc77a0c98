package agentserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/wire"
)

const (
	// maxMessage is the maximum size of a gRPC message in bytes. A piece has 64 KiB; a
	// registration with many namespaces may be larger.
	maxMessage = 1 << 20
	// maxStreams is the maximum number of streams of one connection. An agent has two,
	// and one for each log and each large outcome, of which it sends at most 64 at
	// once.
	maxStreams = 256
	// maxHeaders is the maximum size of a request's headers in bytes; gRPC's own
	// headers have about 500.
	maxHeaders = 16 << 10
)

// ServerOptions returns the options for the gRPC server of agents: the codec, and
// limits for connections that have not been authenticated yet.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(wire.Codec()),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHeaders),
		grpc.ReadBufferSize(8 << 10), grpc.WriteBufferSize(8 << 10),
		grpc.ConnectionTimeout(20 * time.Second),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: time.Minute}), // a connection without streams
	}
}

// certificateDigest returns the digest of the client certificate of a stream; empty
// without one.
func certificateDigest(ctx context.Context) string {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return ""
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return ""
	}
	sum := sha256.Sum256(info.State.PeerCertificates[0].Raw)
	return hex.EncodeToString(sum[:])
}

// sourceOf returns the source to which the memory of a stream is charged: the host, or its
// network of IPv6, together with the client certificate if it was verified. Neither alone is
// enough, because many hosts may share a certificate, and many agents behind a proxy share an
// address.
func sourceOf(ctx context.Context) string {
	p, _ := peer.FromContext(ctx)
	if p == nil || p.Addr == nil {
		return "unknown"
	}
	digest := ""
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 { // anybody can make another one
		digest = certificateDigest(ctx)
	}
	return readlimit.SourceOf(p.Addr.String(), nil) + " " + digest
}

// receiveFirst receives the first message of a stream. If there is none within timeout,
// the stream must end; receive ends with the handler of the stream.
func receiveFirst[M any](ctx context.Context, receive func() (M, error), timeout time.Duration) (M, error) {
	type result struct {
		m   M
		err error
	}
	first := make(chan result, 1)
	go func() {
		m, err := receive()
		first <- result{m, err}
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var zero M
	select {
	case r := <-first:
		return r.m, r.err
	case <-ctx.Done():
		return zero, statusOf(context.Cause(ctx))
	case <-timer.C:
		return zero, status.Errorf(codes.DeadlineExceeded, "the first message did not arrive within %v", timeout)
	}
}
