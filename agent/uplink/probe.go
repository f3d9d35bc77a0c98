package uplink

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/vedette-io/vedette"
)

// Probe connects to the server, and asks whether it accepts agents. It does not register an agent,
// so that it does not disturb a running one with the same name.
func Probe(ctx context.Context, cfg Config) error {
	cfg = cfg.withRememberedToken()
	var servers *balancer
	if cfg.Addresses != nil {
		servers = newBalancer(cfg.Addresses)
	}
	target, options := servers.balanced(cfg.Target)
	conn, err := grpc.NewClient(target, slices.Concat([]grpc.DialOption{
		grpc.WithTransportCredentials(cfg.Creds),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 10 * time.Second}),
		grpc.WithDisableServiceConfig(),
	}, options, cfg.dialOptions())...)
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "clouddriver.grpc %q is not a valid address: %w", cfg.Target, err)
	}
	defer conn.Close()
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	switch {
	case err != nil:
		return explainError(err, cfg)
	case answer.GetStatus() != healthpb.HealthCheckResponse_SERVING:
		return vedette.Errorf(vedette.Unavailable, "the server at %s answers, but is not ready: its log says why", cfg.Target)
	}
	return nil
}
