package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/config"
)

// TestServersAreFound checks where the servers of balanceConnection come from.
func TestServersAreFound(t *testing.T) {
	inCluster := config.BalancedServers{Host: "svc.spin.svc.cluster.local", Port: "9091", Service: "svc", Namespace: "spin"}
	inDNS := config.BalancedServers{Host: "servers.example.com", Port: "9091"}
	for _, tt := range []struct {
		name    string
		servers config.BalancedServers
		denied  error
		want    []string
		lines   int // about the endpoints that cannot be read, of two look-ups
	}{
		{"endpoints", inCluster, nil, []string{"10.0.0.1:9091"}, 0},
		{"no right to read endpoints", inCluster, errors.New("denied"), []string{"10.1.1.1:9091", "[2001:db8::1]:9091"}, 1},
		{"the DNS only", inDNS, nil, []string{"10.1.1.1:9091", "[2001:db8::1]:9091"}, 0},
	} {
		var log bytes.Buffer
		f := newServerFinder(tt.servers, slog.New(slog.NewTextHandler(&log, nil)))
		f.endpoints = func(_ context.Context, s config.BalancedServers) ([]string, error) {
			if s != inCluster {
				t.Errorf("%s: asked for the endpoints of %v", tt.name, s)
			}
			return []string{"10.0.0.1:9091"}, tt.denied
		}
		f.lookUp = func(_ context.Context, host string) ([]string, error) {
			if host != tt.servers.Host {
				t.Errorf("%s: looked up %s", tt.name, host)
			}
			return []string{"10.1.1.1", "2001:db8::1"}, nil
		}
		for range 2 {
			if got, err := f.addresses(t.Context()); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%s: got %v, %v, want %v", tt.name, got, err, tt.want)
			}
		}
		if lines := strings.Count(log.String(), "balanceConnection asks the DNS"); lines != tt.lines {
			t.Errorf("%s: got %d lines, want %d", tt.name, lines, tt.lines)
		}
	}
	f := newServerFinder(inDNS, slog.New(slog.DiscardHandler))
	f.lookUp = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
	if _, err := f.addresses(t.Context()); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("got %v, want why the host is not found", err)
	}
}
