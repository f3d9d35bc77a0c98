package settings

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// TestManagementAddressIsChecked checks where probes and metrics are served, and which configurations are wrong.
func TestManagementAddressIsChecked(t *testing.T) {
	for _, tt := range []struct {
		name    string
		server  ManagementServer
		address string
		says    string
	}{
		{"no port", ManagementServer{Port: -1, Address: "127.0.0.1"}, "", ""},
		{"the loopback address", ManagementServer{Port: 8081, Address: "127.0.0.1"}, "127.0.0.1:8081", ""},
		{"all addresses", ManagementServer{Port: 8081, Address: "*"}, ":8081", ""},
		{"IPv6", ManagementServer{Port: 8081, Address: "[::1]"}, "[::1]:8081", ""},
		{"a port that the system chooses", ManagementServer{Address: "localhost"}, "localhost:0", ""},
		{"the main port", ManagementServer{Port: 7002, Address: "*"}, "", "notice management.server.port is server.port"},
		{"below -1", ManagementServer{Port: -2}, "", `problem "management.server.port" must be a port from 0 to 65535, or -1 for none, got -2`},
		{"too large", ManagementServer{Port: 65536, Address: "127.0.0.1"}, "127.0.0.1:65536", "problem"},
		{"TLS without a certificate", ManagementServer{Port: 1, Address: "h", SSL: SSL{Enabled: true}}, "h:1", `problem "management.server.ssl.enabled" is true, but "management.server.ssl.certFile" is missing`},
	} {
		m, report := Management{Server: tt.server}, configfile.Report{}
		m.Check(7002, report.Checker().At("management"))
		said := ""
		for _, p := range report.Problems {
			said += "problem " + p.Message
		}
		for _, notice := range report.Notices {
			said += "notice " + strings.TrimPrefix(notice, "default: ")
		}
		if got := m.ListenAddress(); got != tt.address || (said == "") != (tt.says == "") || !strings.Contains(said, tt.says) {
			t.Errorf("%s: got %q, which says %q, want %q, %q", tt.name, got, said, tt.address, tt.says)
		}
	}
}
