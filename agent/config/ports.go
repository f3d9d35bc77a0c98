package config

// checkPortsDiffer rejects two ports that are the same, because the second could not be opened.
// Port 0 is a free port that the system chooses.
func (c *Config) checkPortsDiffer() {
	usedBy := map[int]string{}
	for _, p := range []struct {
		key  string
		port int
		open bool
	}{
		{"server.port", c.Server.Port, true},
		{"prometheus.port", c.Prometheus.Port, c.Prometheus.Enabled},
		{"pprof.port", c.Pprof.Port, c.Pprof.Enabled},
		{"management.server.port", c.Management.Server.Port, c.Management.IsEnabled()},
	} {
		if !p.open || p.port == 0 {
			continue
		}
		if other := usedBy[p.port]; other != "" {
			c.Report.AddAt(p.key, "%q and %q are both %d: choose another port for one of them", other, p.key, p.port)
		}
		usedBy[p.port] = p.key
	}
}
