package config

import "net"

// checkPortsDiffer rejects two ports that are the same, because the second could not be opened.
// Port 0 is a free port that the system chooses.
func (c *Config) checkPortsDiffer() {
	c.checkManagementPort()
	c.checkPeersPort()
	if c.Server.Port != c.GRPC.Server.Port || c.Server.Port == 0 || !overlap(c.RESTListen().Address, c.GRPCListen().Address) {
		return
	}
	c.Report.AddAt("grpc.server.port", "%q and %q are both %d: choose another port for one of them", "server.port", "grpc.server.port",
		c.Server.Port)
}

// checkManagementPort rejects a port for probes that is another port, too.
func (c *Config) checkManagementPort() {
	m := c.Management
	for _, p := range []struct {
		key, address string
		port         int
		open         bool
	}{
		{"grpc.server.port", c.GRPCListen().Address, c.GRPC.Server.Port, true},
		{"prometheus.port", c.MetricsListen().Address, c.Prometheus.Port, c.Prometheus.Enabled},
		{"pprof.port", c.Profiles(nil, nil).Address(), c.Pprof.Port, c.Pprof.Enabled},
	} {
		if m.IsEnabled() && p.open && p.port == m.Server.Port && p.port != 0 && overlap(p.address, m.ListenAddress()) {
			const key = "management.server.port"
			c.Report.AddAt(key, "%q and %q are both %d: choose another port for one of them", p.key, key, p.port)
		}
	}
}

// checkPeersPort rejects a port for other servers that is another port, too.
func (c *Config) checkPeersPort() {
	port := c.Server.Peers.Port
	if !c.SharesDatabase() || port == 0 {
		return
	}
	for _, p := range []struct {
		key, address string
		port         int
		open         bool
	}{
		{"server.port", c.RESTListen().Address, c.Server.Port, true},
		{"grpc.server.port", c.GRPCListen().Address, c.GRPC.Server.Port, true},
		{"management.server.port", c.Management.ListenAddress(), c.Management.Server.Port, c.Management.IsEnabled()},
		{"prometheus.port", c.MetricsListen().Address, c.Prometheus.Port, c.Prometheus.Enabled},
		{"pprof.port", c.Profiles(nil, nil).Address(), c.Pprof.Port, c.Pprof.Enabled},
	} {
		if p.open && p.port == port && overlap(p.address, c.PeersListen()) {
			const key = "server.peers.port"
			c.Report.AddAt(key, "%q and %q are both %d: choose another port for one of them", p.key, key, port)
		}
	}
}

// overlap reports whether two addresses include the same one. An empty host means all addresses.
func overlap(a, b string) bool {
	hostA, _, errA := net.SplitHostPort(a)
	hostB, _, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && (isAny(hostA) || isAny(hostB) || hostA == hostB)
}

func isAny(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }
