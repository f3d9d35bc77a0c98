package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/vedette-io/vedette/agent/bearer"
	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
)

// certifiedServer is a gRPC server whose certificate and authority change, and that notes who asks.
type certifiedServer struct {
	address string
	tls     atomic.Pointer[tls.Config]
	caller  atomic.Value // the name in the certificate and the token of the last request
}

func startCertifiedServer(t *testing.T) *certifiedServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &certifiedServer{address: l.Addr().String()}
	creds := credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		cfg := s.tls.Load().Clone()
		cfg.NextProtos = []string{"h2"}
		return cfg, nil
	}})
	srv := grpc.NewServer(grpc.Creds(creds), grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		p, _ := peer.FromContext(ctx)
		s.caller.Store(p.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].Subject.CommonName + " " + strings.Join(md["authorization"], ","))
		return next(ctx, req)
	}))
	healthpb.RegisterHealthServer(srv, health.NewServer())
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(srv.Stop)
	return s
}

// TestCredentialsForTheServerRotate replaces the agent's certificate, key, authority and token while it
// runs: the next connection uses them. Half of a rotation changes nothing.
func TestCredentialsForTheServerRotate(t *testing.T) {
	first, second := keypairtest.New(t), keypairtest.New(t)
	server, dir := startCertifiedServer(t), t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	copyFile := func(from, to string) {
		t.Helper()
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path(to), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeConfig := func(token string) {
		t.Helper()
		text := "clouddriver: {grpc: '" + server.address + "', auth: {token: " + token + "}, tls: {cacertFile: " + path("ca.crt") +
			", clientCertFile: " + path("agent.crt") + ", clientKeyFile: " + path("agent.key") + "}}\n"
		if err := os.WriteFile(path("agent.yml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair := first.Issue("agent-1")
	copyFile(first.File, "ca.crt")
	copyFile(pair.Cert, "agent.crt")
	copyFile(pair.Key, "agent.key")
	server.tls.Store(first.ServerTLS())
	writeConfig("one")
	cfg, err := config.Load(path("agent.yml"), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	settings, err := newAgentConfig(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	r := newReloader(cfg, nil, &recordedAgent{}, metrics.New("test"), log)
	r.token, _ = settings.Uplink.Token.(*bearer.Variable)
	expect := func(name, want string) {
		t.Helper()
		if err := uplink.Probe(t.Context(), settings.Uplink); err != nil || server.caller.Load() != want {
			t.Errorf("%s: got %v, %v, want %s", name, server.caller.Load(), err, want)
		}
	}
	expect("at first", "agent-1 Bearer one")
	copyFile(second.Issue("agent-2").Cert, "agent.crt")
	expect("a certificate without its key", "agent-1 Bearer one")
	pair = second.Issue("agent-2")
	copyFile(pair.Cert, "agent.crt")
	copyFile(pair.Key, "agent.key")
	copyFile(second.File, "ca.crt")
	server.tls.Store(second.ServerTLS())
	writeConfig("two")
	expect("before the reload of the token", "agent-2 Bearer one")
	r.Reload(t.Context(), nil)
	expect("after it", "agent-2 Bearer two")
	if keys := r.Status().RestartKeys; len(keys) > 0 {
		t.Errorf("%q need a restart", keys)
	}
}
