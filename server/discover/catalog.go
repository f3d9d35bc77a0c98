package discover

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// maxAddresses bounds what is kept of a cluster, and so the memory: an address takes some 200 bytes. It is ten times as many servers as one
// database serves.
const maxAddresses = 20_000

// maxIDBytes is the longest name of a pod.
const maxIDBytes = 253

// endpoint is an address of a Service.
type endpoint struct {
	id      vedette.ServerID
	address netip.Addr
	port    uint16
	isReady bool
}

// object is what is kept of an EndpointSlice or Endpoints.
type object struct {
	service   string
	endpoints []endpoint
}

// catalog has the endpoints of all matching Services. It does no I/O and reads no clock. The zero value is empty.
type catalog struct {
	objects map[string]object // by the object's name
	count   int               // of endpoints in all objects
}

// put adds or replaces an object. It fails if there would be too many endpoints; the catalog is unchanged then.
func (c *catalog) put(name string, o object) error {
	count := c.count - len(c.objects[name].endpoints) + len(o.endpoints)
	if count > maxAddresses {
		return fmt.Errorf("the Services have more than %d addresses: check the prefix of their names", maxAddresses)
	}
	if len(o.endpoints) == 0 {
		c.remove(name)
		return nil
	}
	if c.objects == nil {
		c.objects = map[string]object{}
	}
	c.objects[name], c.count = o, count
	return nil
}

func (c *catalog) remove(name string) {
	c.count -= len(c.objects[name].endpoints)
	delete(c.objects, name)
}

// naming is how addresses become URLs.
type naming struct {
	scheme string
	// domain is appended to the address with dashes; empty for URLs with addresses.
	domain string
}

// url returns the base URL of an endpoint. With a domain, its host is the name that a cluster's DNS has for pods:
// 10-0-0-1.namespace.pod.cluster.local.
func (n naming) url(e endpoint) string {
	host := e.address.String()
	if n.domain != "" {
		host = strings.NewReplacer(".", "-", ":", "-").Replace(host) + n.domain
	}
	return baseURL(n.scheme, host, e.port)
}

// servers returns one server per ID, in the order of IDs. Where Services differ about a pod, the port is that of the first Service by name,
// the address IPv4 if there is one, and the pod is ready if it is ready in all of them: Services that publish addresses which are not ready
// say that all are.
func (c *catalog) servers(n naming) []Server {
	type entry struct {
		service, object string
		endpoint
	}
	entries := make([]entry, 0, c.count)
	for name, o := range c.objects {
		for _, e := range o.endpoints {
			entries = append(entries, entry{o.service, name, e})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.address.BitLen(), b.address.BitLen()), cmp.Compare(a.service, b.service),
			cmp.Compare(a.object, b.object), compareAddresses(a.address, b.address), cmp.Compare(a.port, b.port))
	})
	servers := make([]Server, 0, len(entries))
	for i, e := range entries {
		if i > 0 && entries[i-1].id == e.id {
			last := &servers[len(servers)-1]
			last.Ready = last.Ready && e.isReady
			continue
		}
		servers = append(servers, Server{ID: e.id, BaseURL: n.url(e.endpoint), Address: e.address, Ready: e.isReady})
	}
	return servers
}

// withTime returns a copy of a list with the time at which it was known.
func withTime(servers []Server, known time.Time) []Server {
	all := append([]Server{}, servers...)
	for i := range all {
		all[i].LastUpdated = known
	}
	return all
}
