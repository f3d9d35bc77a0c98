package config

import (
	"strings"

	"github.com/vedette-io/vedette/internal/settings"
)

// Connections returns who can connect to which port of the server.
func (c *Config) Connections() []string {
	ports := []settings.Port{c.Server.SSL.Port("REST", c.RESTListen().Address), c.grpcPort()}
	if c.Management.IsEnabled() {
		ports = append(ports, c.Management.Server.SSL.Port("probes and metrics (management)", c.Management.ListenAddress()))
	}
	if c.Prometheus.Enabled {
		ports = append(ports, c.Prometheus.SSL.Port("metrics", c.MetricsListen().Address))
	}
	if c.Pprof.Enabled {
		ports = append(ports, c.Server.SSL.Port("profiles", c.Profiles(nil, nil).Address()))
	}
	lines := make([]string, len(ports))
	for i, port := range ports {
		lines[i] = port.String()
	}
	if c.SharesDatabase() {
		lines = append(lines, "port for other servers: "+c.PeersListen()+", TLS 1.3, only servers whose keys are in the same database")
	}
	return lines
}

// grpcPort describes the port for agents.
func (c *Config) grpcPort() settings.Port {
	s := c.GRPC.Server.Security
	port := settings.Port{Name: "agents", Address: c.GRPCListen().Address, TLS: s.Enabled, MinVersion: s.minVersion(),
		ClientAuth: s.ClientAuth, CAFile: settings.FilePath(s.TrustCertCollection), KeyPair: s.keyPair()}
	if c.GRPC.Auth.X509.Enabled {
		port.Also = ", with a subject that matches " + strings.Join(c.GRPC.Auth.X509.Filters, " or ")
	}
	return port
}
