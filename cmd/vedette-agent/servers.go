package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/vedette-io/vedette/agent/config"
)

// serverFinder finds the servers among which balanceConnection chooses. It is safe for concurrent use.
type serverFinder struct {
	config.BalancedServers

	endpoints func(context.Context, config.BalancedServers) ([]string, error) // in the cluster of the agent
	lookUp    func(ctx context.Context, host string) ([]string, error)
	log       *slog.Logger

	mu      sync.Mutex
	problem string // that was logged last
}

// endpointsTimeout bounds how long the API server may take, because the DNS can be asked instead.
const endpointsTimeout = 3 * time.Second

func newServerFinder(s config.BalancedServers, log *slog.Logger) *serverFinder {
	return &serverFinder{BalancedServers: s, endpoints: findEndpoints, lookUp: net.DefaultResolver.LookupHost, log: log}
}

// addresses returns the addresses of the servers: those of the Service in the cluster of the agent, or else those in the DNS.
func (f *serverFinder) addresses(ctx context.Context) ([]string, error) {
	if f.Service != "" {
		addresses, err := f.fromService(ctx)
		if err == nil {
			return addresses, nil
		}
		f.note(err)
	}
	hosts, err := f.lookUp(ctx, f.Host)
	if err != nil {
		return nil, fmt.Errorf("find the servers for balanceConnection: %w", err)
	}
	addresses := make([]string, len(hosts))
	for i, host := range hosts {
		addresses[i] = net.JoinHostPort(host, f.Port)
	}
	return addresses, nil
}

func (f *serverFinder) fromService(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, endpointsTimeout)
	defer cancel()
	return f.endpoints(ctx, f.BalancedServers)
}

// note logs why the endpoints cannot be read, once for each reason.
func (f *serverFinder) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problem == err.Error() {
		return
	}
	f.problem = err.Error()
	f.log.Info("balanceConnection asks the DNS, because the endpoints of the servers cannot be read", "service", f.Service,
		"namespace", f.Namespace, "host", f.Host, "error", err)
}

// findEndpoints asks the API server of the cluster in which the agent runs.
func findEndpoints(ctx context.Context, s config.BalancedServers) ([]string, error) {
	cluster, err := connectOwnCluster()
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	return cluster.ServiceAddresses(ctx, s.Namespace, s.Service, s.Port)
}
