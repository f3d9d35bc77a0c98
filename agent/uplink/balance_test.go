package uplink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/wire"
)

// TestAgentsSpreadOverServers checks that many agents choose servers evenly, each of them all servers in turn, and those to be avoided last.
func TestAgentsSpreadOverServers(t *testing.T) {
	const agents = 3000
	servers := []string{"10.0.0.1:9091", "10.0.0.2:9091", "10.0.0.3:9091", "10.0.0.1:9091"}
	first := map[string]int{}
	now := time.Now()
	for range agents {
		b := newBalancer(nil)
		order := b.order(servers, now)
		first[order[0]]++
		if slices.Sort(order); !slices.Equal(order, servers[:3]) {
			t.Fatalf("got %v, want each server once", order)
		}
	}
	for server, n := range first {
		if n < agents/3-150 || n > agents/3+150 { // six standard deviations
			t.Errorf("%d of %d agents choose %s, want a third", n, agents, server)
		}
	}
	b := newBalancer(nil)
	b.avoid(parseAddress("10.0.0.2:9091"), now)
	b.avoid(parseAddress("[::ffff:10.0.0.1]:9091"), now.Add(time.Second)) // the same server in another form
	for range 20 {
		if got := b.order(servers, now.Add(time.Second)); !slices.Equal(got, []string{"10.0.0.3:9091", "10.0.0.2:9091", "10.0.0.1:9091"}) {
			t.Fatalf("got %v, want those that have refused last", got)
		}
	}
	if b.order(servers, now.Add(avoidFor)); len(b.avoided) != 1 {
		t.Errorf("%d servers are still avoided, want one", len(b.avoided))
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("10.0.%d.%d:9091", i/250, i%250))
	}
	if got := len(b.order(many, now)); got != maxAddresses {
		t.Errorf("got %d addresses for one connection, want %d", got, maxAddresses)
	}
}

// refusingServer is a server that refuses each agent, and counts them.
type refusingServer struct {
	wire.UnimplementedCachingServer
	mu    sync.Mutex
	count int
}

// Connect implements wire.CachingServer.
func (s *refusingServer) Connect(grpc.BidiStreamingServer[wire.AgentMessage, wire.ServerMessage]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return status.Error(codes.Unavailable, "the server is stopping and accepts no agents")
}

func (s *refusingServer) start(t *testing.T, creds credentials.TransportCredentials) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.Creds(creds), grpc.ForceServerCodecV2(wire.Codec()))
	wire.RegisterCachingServer(srv, s)
	go func() { _ = srv.Serve(listener) }()
	t.Cleanup(srv.Stop)
	return listener.Addr().String()
}

// TestAgentDoesNotStickToServersThatRefuse connects again and again to servers of which one is dead, and all others refuse. Their
// certificate names the target, not the addresses.
func TestAgentDoesNotStickToServersThatRefuse(t *testing.T) {
	certificate, pool := certificate(t, time.Now().Add(time.Hour), "servers.example.com")
	creds := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13})
	var servers [3]refusingServer
	var addresses []string
	for i := range servers {
		addresses = append(addresses, servers[i].start(t, creds))
	}
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addresses = append(addresses, dead.Addr().String())
	_ = dead.Close()
	cfg := Config{Target: "servers.example.com:9091", TLS: true, Creds: credentials.NewTLS(&tls.Config{RootCAs: pool}),
		Addresses: func(context.Context) ([]string, error) { return addresses, nil }}
	for _, failure := range failures(t, cfg, 6) {
		if !strings.Contains(failure, "the server is stopping") {
			t.Errorf("got %q, want that a server refuses", failure)
		}
	}
	for i := range servers {
		if servers[i].count != 2 {
			t.Errorf("server %d was asked %d times of 6, want each in turn: %d %d %d", i, servers[i].count, servers[0].count, servers[1].count,
				servers[2].count)
		}
	}
	cfg.Target = "other.example.com:9091"
	addresses = addresses[:len(servers)] // otherwise the failure may be that of the dead one
	for _, failure := range failures(t, cfg, 1) {
		if !strings.Contains(failure, "the server's certificate is for another host") {
			t.Errorf("got %q, want that the name of the target counts", failure)
		}
	}
}

// TestServersThatAreNotFound checks what an agent says if it finds no server.
func TestServersThatAreNotFound(t *testing.T) {
	for want, addresses := range map[string]func(context.Context) ([]string, error){
		"nobody knows":            func(context.Context) ([]string, error) { return nil, errors.New("nobody knows") },
		"produced zero addresses": func(context.Context) ([]string, error) { return nil, nil },
	} {
		cfg := Config{Target: "servers.example.com:9091", Creds: insecure.NewCredentials(), Addresses: addresses}
		if got := failures(t, cfg, 1)[0]; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	u := New(Config{Target: "servers.example.com:9091", Creds: insecure.NewCredentials(),
		Addresses: func(ctx context.Context) ([]string, error) { <-ctx.Done(); return nil, ctx.Err() }}, outbox.New(1), nil, nil, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.Run(ctx); err != nil { // returns although the look-up goes on
		t.Error(err)
	}
}
