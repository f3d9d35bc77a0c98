package config

import "testing"

// TestBalancedServers checks where balanceConnection looks for servers.
func TestBalancedServers(t *testing.T) {
	for _, tt := range []struct {
		file string
		want BalancedServers // zero for none
	}{
		{"{}", BalancedServers{}},
		{"clouddriverNamespace: spin", BalancedServers{}},
		{"balanceConnection: true", BalancedServers{Host: "spin-clouddriver-grpc", Port: "9091"}},
		{"{balanceConnection: true, clouddriver.grpc: 'servers.example.com:443'}", BalancedServers{Host: "servers.example.com", Port: "443"}},
		{"{balanceConnection: true, clouddriverNamespace: spin}",
			BalancedServers{Host: "spin-clouddriver-grpc.spin.svc.cluster.local", Port: "9091", Service: "spin-clouddriver-grpc", Namespace: "spin"}},
		{"{balanceConnection: true, clouddriverNamespace: spin, domainName: corp.example., clouddriver.grpc: 'grpc:9091'}",
			BalancedServers{Host: "grpc.spin.svc.corp.example", Port: "9091", Service: "grpc", Namespace: "spin"}},
		{"{balanceConnection: true, clouddriverNamespace: spin, clouddriver.grpc: 'grpc.spin:9091'}",
			BalancedServers{Host: "grpc.spin", Port: "9091", Service: "grpc", Namespace: "spin"}},
		{"{balanceConnection: true, clouddriverNamespace: spin, clouddriver.grpc: '10.0.0.1:9091'}", BalancedServers{Host: "10.0.0.1", Port: "9091"}},
		{"{balanceConnection: true, clouddriver.grpc: '[2001:db8::1]:9091'}", BalancedServers{Host: "2001:db8::1", Port: "9091"}},
	} {
		c, err := parse("c.yml", []byte(tt.file), testEnv)
		if err != nil {
			t.Fatalf("%s: %v", tt.file, err)
		}
		if got, ok := c.BalancedServers(); got != tt.want || ok != (tt.want != BalancedServers{}) {
			t.Errorf("%s: got %+v, %t, want %+v", tt.file, got, ok, tt.want)
		}
	}
}
