package config

import "net"

// checkPortsDiffer rejects two ports that are the same, because the second could not be opened.
// Port 0 is a free port that the system chooses.
func (c *Config) checkPortsDiffer() {
	if c.Server.Port != c.GRPC.Server.Port || c.Server.Port == 0 || !overlap(c.RESTListen().Address, c.GRPCListen().Address) {
		return
	}
	c.addProblem("grpc.server.port", "%q and %q are both %d: choose another port for one of them", "server.port", "grpc.server.port",
		c.Server.Port)
}

// overlap reports whether two addresses include the same one. An empty host means all addresses.
func overlap(a, b string) bool {
	hostA, _, errA := net.SplitHostPort(a)
	hostB, _, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && (isAny(hostA) || isAny(hostB) || hostA == hostB)
}

func isAny(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }
