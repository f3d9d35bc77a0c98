package config

import (
	"net"
	"net/netip"
	"strings"
)

// BalancedServers says where the servers are among which balanceConnection chooses.
type BalancedServers struct {
	Port string
	// Service and Namespace are those of the servers in the cluster of the agent; empty if only the DNS is asked.
	Service, Namespace string
	Host               string // in the DNS
}

// BalancedServers returns where the servers are. It returns false if balanceConnection is not set.
func (c *Config) BalancedServers() (BalancedServers, bool) {
	host, port, err := net.SplitHostPort(c.Clouddriver.GRPC)
	if err != nil || !c.BalanceConnection {
		return BalancedServers{}, false
	}
	s := BalancedServers{Host: host, Port: port}
	if _, err := netip.ParseAddr(host); err == nil || c.ClouddriverNamespace == "" {
		return s, true
	}
	s.Namespace = c.ClouddriverNamespace
	service, _, isQualified := strings.Cut(host, ".")
	s.Service = service
	if !isQualified {
		s.Host = strings.Join([]string{service, s.Namespace, "svc", strings.Trim(c.DomainName, ".")}, ".")
	}
	return s, true
}
