package settings

import (
	"net"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Management configures a port of its own for probes and metrics, so that they work while other ports require
// client certificates. The keys are Spring's.
type Management struct {
	Server ManagementServer `config:"server"`

	isMainPort bool // the port is that of the program itself, as Spring allows
}

// ManagementServer configures the port for probes and metrics.
type ManagementServer struct {
	// Port of /health, /health/liveness, /health/readiness and /ready, without client certificates; with prometheus.enabled
	// also of /metrics. Other machines see a status only, without reasons. The paths stay on the other ports, too. -1 for none.
	Port int `config:"port" default:"-1"`
	// Address to listen on; * for all, for example for probes of a kubelet, which come to the pod's address.
	Address string `config:"address" default:"127.0.0.1"`
	// Security of the port.
	SSL SSL `config:"ssl"`
}

// IsEnabled reports whether there is such a port.
func (m Management) IsEnabled() bool { return m.Server.Port >= 0 && !m.isMainPort }

// Host returns the host to listen on; empty for all addresses.
func (m Management) Host() string {
	if m.Server.Address == "*" {
		return ""
	}
	return strings.Trim(m.Server.Address, "[]")
}

// ListenAddress returns the address of the port, or "" if there is none.
func (m Management) ListenAddress() string {
	if !m.IsEnabled() {
		return ""
	}
	return net.JoinHostPort(m.Host(), strconv.Itoa(m.Server.Port))
}

// Check reports what is wrong with the group. The paths are on the main port of the program, too, so that no
// second port is opened if it is the same.
func (m *Management) Check(mainPort int, c configfile.Checker) {
	c = c.At("server")
	if m.Server.Port < -1 || m.Server.Port > 65535 {
		c.Problem("port", " must be a port from 0 to 65535, or -1 for none, got %d", m.Server.Port)
	}
	if m.Server.Port == mainPort && mainPort > 0 {
		m.isMainPort = true
		c.Notice("port", "%s is server.port, which serves the paths for probes anyway: no other port is opened", c.Path("port"))
	}
	m.Server.SSL.Check("", c.At("ssl"))
}
