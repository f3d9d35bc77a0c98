package config

import "fmt"

// Connections returns who can connect to which port of the agent, and how the agent connects to its server.
func (c *Config) Connections() []string {
	lines := []string{c.serverConnection(), c.Server.SSL.Port("health and operators", c.Server.ListenAddress()).String()}
	if c.Management.IsEnabled() {
		lines = append(lines, c.Management.Server.SSL.Port("probes and metrics (management)", c.Management.ListenAddress()).String())
	}
	if c.Prometheus.Enabled {
		lines = append(lines, c.Prometheus.SSL.Port("metrics", c.Prometheus.ListenAddress()).String())
	}
	return lines
}

func (c *Config) serverConnection() string {
	cd := c.Clouddriver
	text := fmt.Sprintf("connection to the server: %s, ", cd.GRPC)
	if cd.IsInsecure() {
		return text + "plain text, no client certificate"
	}
	text += "TLS 1.2 or later, "
	switch {
	case cd.TLS.InsecureSkipVerify:
		text += "the server's certificate is not verified"
	case cd.TLS.CACertFile != "":
		text += "the server's certificate is signed by an authority in " + cd.TLS.CACertFile
	default:
		text += "the server's certificate is signed by an authority of the system"
	}
	if certificate := cd.DescribeCertificate(); certificate != "" {
		return text + ", client certificate " + certificate
	}
	return text + ", no client certificate"
}
