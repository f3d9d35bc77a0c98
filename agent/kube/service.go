package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"github.com/vedette-io/vedette"
)

// ServiceAddresses returns the addresses, host:port, of the ready endpoints of a Service: those of its EndpointSlices or, if the
// cluster does not serve these or the credentials may not list them, of its Endpoints. The port is the one with that number, or else the
// only one, or the one that is named grpc.
func (c *Cluster) ServiceAddresses(ctx context.Context, namespace, service, port string) ([]string, error) {
	found, err := c.readSlices(ctx, namespace, service)
	if status, ok := errors.AsType[*StatusError](err); ok && (status.Code == http.StatusForbidden || status.Code == http.StatusNotFound) {
		found, err = c.readEndpoints(ctx, namespace, service)
	}
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, s := range found {
		addresses = append(addresses, s.addresses(port)...)
	}
	if len(addresses) == 0 {
		return nil, vedette.Errorf(vedette.NotFound, "Service %s in namespace %s has no ready endpoint with port %s: check the selector of the Service, and its pods",
			service, namespace, port)
	}
	return addresses, nil
}

// endpointSlice is the part of an EndpointSlice that this package reads.
type endpointSlice struct {
	Ports     []endpointPort `json:"ports"`
	Endpoints []struct {
		Addresses  []string `json:"addresses"`
		Conditions struct {
			Ready *bool `json:"ready"` // nil counts as true
		} `json:"conditions"`
	} `json:"endpoints"`
}

type endpointPort struct {
	Name string `json:"name"`
	Port uint16 `json:"port"`
}

// addresses returns the addresses of a slice.
func (s endpointSlice) addresses(port string) (found []string) {
	number, ok := choosePort(s.Ports, port)
	if !ok {
		return nil
	}
	for _, e := range s.Endpoints {
		if e.Conditions.Ready != nil && !*e.Conditions.Ready || len(e.Addresses) == 0 {
			continue
		}
		if _, err := netip.ParseAddr(e.Addresses[0]); err == nil { // others are names
			found = append(found, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(number))))
		}
	}
	return found
}

// choosePort returns which port of an endpoint belongs to a port of its Service.
func choosePort(ports []endpointPort, wanted string) (uint16, bool) {
	for _, matches := range []func(endpointPort) bool{
		func(p endpointPort) bool { return strconv.Itoa(int(p.Port)) == wanted },
		func(endpointPort) bool { return len(ports) == 1 },
		func(p endpointPort) bool { return p.Name == "grpc" },
	} {
		if i := slices.IndexFunc(ports, matches); i >= 0 && ports[i].Port != 0 {
			return ports[i].Port, true
		}
	}
	return 0, false
}

func (c *Cluster) readSlices(ctx context.Context, namespace, service string) ([]endpointSlice, error) {
	var list struct {
		Items []endpointSlice `json:"items"`
	}
	err := c.getDocument(ctx, GetRequest{Path: "/apis/discovery.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/endpointslices",
		Query: url.Values{"labelSelector": {"kubernetes.io/service-name=" + service}}, Accept: AcceptJSON}, &list)
	return list.Items, err
}

// readEndpoints returns the Endpoints of a Service as slices.
func (c *Cluster) readEndpoints(ctx context.Context, namespace, service string) (found []endpointSlice, err error) {
	var endpoints struct {
		Subsets []struct {
			Ports     []endpointPort `json:"ports"`
			Addresses []struct {
				IP string `json:"ip"`
			} `json:"addresses"`
		} `json:"subsets"`
	}
	err = c.getDocument(ctx, GetRequest{Path: "/api/v1/namespaces/" + url.PathEscape(namespace) + "/endpoints/" + url.PathEscape(service),
		Accept: AcceptJSON}, &endpoints)
	for _, subset := range endpoints.Subsets {
		s := endpointSlice{Ports: subset.Ports}
		s.Endpoints = slices.Grow(s.Endpoints, len(subset.Addresses))[:len(subset.Addresses)]
		for i, address := range subset.Addresses {
			s.Endpoints[i].Addresses = []string{address.IP}
		}
		found = append(found, s)
	}
	return found, err
}
