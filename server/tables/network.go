package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

type serviceSummary struct {
	Type         string
	ClusterIP    string
	ExternalIPs  []string
	ExternalName string
	IPs          []string // of the load balancer
	Hostnames    []string // of the load balancer
	Ports        []int
	NodePorts    []int
	Protocols    []string
	Selector     map[string]string
}

func service() kindTable {
	return kindTable{
		resource: resource("", "v1", "Service", "services", true, "svc"),
		fields: fields("type", "spec.type", "clusterIP", "spec.clusterIP", "externalIPs", "spec.externalIPs",
			"externalName", "spec.externalName", "ips", "status.loadBalancer.ingress.*.ip",
			"hostnames", "status.loadBalancer.ingress.*.hostname", "ports", "spec.ports.*.port",
			"nodePorts", "spec.ports.*.nodePort", "protocols", "spec.ports.*.protocol", "selector", "spec.selector"),
		table: newTable(columns("TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE", "SELECTOR*"),
			func(s *serviceSummary, o *vedette.Object, now time.Time) []string {
				return []string{s.Type, cmp.Or(s.ClusterIP, none), s.externalAddress(), s.portText(), ageSince(o.Created, now),
					formatLabels(s.Selector)}
			}),
	}
}

func (s *serviceSummary) externalAddress() string {
	switch s.Type {
	case "ClusterIP", "NodePort":
		return cmp.Or(strings.Join(s.ExternalIPs, ","), none)
	case "LoadBalancer":
		return cmp.Or(strings.Join(append(addresses(s.IPs, s.Hostnames), s.ExternalIPs...), ","), "<pending>")
	case "ExternalName":
		return s.ExternalName
	default:
		return "<unknown>"
	}
}

// addresses returns the addresses of a load balancer: the IP of each entry, or else its host
// name. Unlike in kubectl they are not truncated to 16 characters, because a truncated address
// cannot be used.
func addresses(ips, hostnames []string) []string {
	var out []string
	for i := range max(len(ips), len(hostnames)) {
		if address := cmp.Or(elementAt(ips, i), elementAt(hostnames, i)); address != "" {
			out = append(out, address)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *serviceSummary) portText() string {
	var out []string
	for i, port := range s.Ports {
		text := fmt.Sprint(port)
		if n := elementAt(s.NodePorts, i); n > 0 {
			text = fmt.Sprintf("%d:%d", port, n)
		}
		out = append(out, text+"/"+cmp.Or(elementAt(s.Protocols, i), "TCP"))
	}
	return cmp.Or(strings.Join(out, ","), none)
}

func ingress() kindTable {
	type summary struct {
		Class     string
		Hosts     []string
		IPs       []string
		Hostnames []string
		TLS       int
	}
	return kindTable{
		resource: resource("networking.k8s.io", "v1", "Ingress", "ingresses", true, "ing"),
		fields: fields("class", "spec.ingressClassName", "hosts", "spec.rules.*.host", "ips", "status.loadBalancer.ingress.*.ip",
			"hostnames", "status.loadBalancer.ingress.*.hostname", "tls", "spec.tls.#",
			"_backend", "spec.defaultBackend.service.name", "_backends", "spec.rules.*.http.paths.*.backend.service.name",
			"_oldBackend", "spec.backend.serviceName", "_oldBackends", "spec.rules.*.http.paths.*.backend.serviceName"),
		table: newTable(columns("CLASS", "HOSTS", "ADDRESS", "PORTS", "AGE"),
			func(s *summary, o *vedette.Object, now time.Time) []string {
				ports := "80"
				if s.TLS > 0 {
					ports = "80, 443"
				}
				return []string{cmp.Or(s.Class, none), formatHosts(s.Hosts), strings.Join(addresses(s.IPs, s.Hostnames), ","), ports,
					ageSince(o.Created, now)}
			}),
	}
}

// formatHosts returns up to three hosts, and the number of further rules.
func formatHosts(rules []string) string {
	const shown = 3
	var list []string
	for i, host := range rules {
		if len(list) == shown && i < len(rules) {
			return fmt.Sprintf("%s + %d more...", strings.Join(list, ","), len(rules)-shown)
		}
		if host != "" {
			list = append(list, host)
		}
	}
	return cmp.Or(strings.Join(list, ","), "*")
}

func networkPolicy() kindTable {
	type summary struct{ Selector selector }
	return kindTable{
		resource: resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true, "netpol"),
		fields:   fields("selector", "spec.podSelector", "types", "spec.policyTypes"),
		table: newTable(columns("POD-SELECTOR", "AGE"), func(s *summary, o *vedette.Object, now time.Time) []string {
			return []string{cmp.Or(s.Selector.String(), none), ageSince(o.Created, now)}
		}),
	}
}
