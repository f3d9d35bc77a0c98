package kube

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// resolvedAddresses are those that the API server's host name had when it was last resolved.
type resolvedAddresses struct {
	mu       sync.Mutex
	resolved time.Time
	sorted   []string // nil before the first time
}

// minResolveInterval bounds how often new connections are opened because addresses have changed: the
// names of some load balancers have other addresses each minute.
const minResolveInterval = time.Minute

// hasMoved reports whether the API server's host name has other addresses than when it was last
// resolved. Open connections do not show that, because they last as long as their watches. A name
// that a proxy resolves, or that cannot be resolved now, has not moved as far as is known.
func (c *Cluster) hasMoved(ctx context.Context) bool {
	host := c.base.Hostname()
	if net.ParseIP(host) != nil || c.usesProxy() || !c.addresses.begin(time.Now()) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addresses, err := c.opts.LookupHost(ctx, host)
	if err != nil || len(addresses) == 0 {
		return false
	}
	return c.addresses.replace(addresses)
}

func (c *Cluster) usesProxy() bool {
	proxy, err := c.currentConnConfig().proxy()(&http.Request{URL: c.base})
	return err == nil && proxy != nil
}

// begin reports whether the addresses are due to be resolved, and takes them for resolved.
func (r *resolvedAddresses) begin(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.resolved.IsZero() && now.Sub(r.resolved) < minResolveInterval {
		return false
	}
	r.resolved = now
	return true
}

// replace reports whether the addresses differ from those before.
func (r *resolvedAddresses) replace(addresses []string) bool {
	sorted := slices.Sorted(slices.Values(addresses))
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.sorted
	r.sorted = sorted
	return before != nil && !slices.Equal(before, sorted)
}
