package config

import (
	"slices"
	"testing"

	"github.com/vedette-io/vedette/internal/settings"
)

// TestCertificatesOfTheManagementPort checks that the files of the port for probes and metrics are looked at like those of
// other ports, if the port is open and uses TLS.
func TestCertificatesOfTheManagementPort(t *testing.T) {
	for name, tt := range map[string]struct {
		port    int
		enabled bool
		want    bool
	}{
		"TLS":     {8081, true, true},
		"no TLS":  {8081, false, false},
		"no port": {-1, true, false},
	} {
		var c Config
		c.Management.Server = settings.ManagementServer{Port: tt.port, SSL: settings.SSL{Enabled: tt.enabled, CertFile: "port.pem"}}
		var names []string
		for _, use := range c.CertificateUses() {
			if use.KeyPair.Cert == "port.pem" {
				names = append(names, use.Name)
			}
		}
		if got := slices.Equal(names, []string{"management.server.ssl"}); got != tt.want {
			t.Errorf("%s: got %v, want it: %v", name, names, tt.want)
		}
	}
}
