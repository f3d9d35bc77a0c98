package uplink

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
)

// balancer spreads agents over the servers behind a target. Each connection tries their addresses in a random order, so that
// many agents are spread evenly without knowing each other. Servers that have refused, asked to connect again or lost the
// connection a short time ago are tried last, so that an agent does not return to one that stops. gRPC's pick_first does the rest: it
// tries the next address if one does not answer.
type balancer struct {
	lookUp func(context.Context) ([]string, error)

	mu      sync.Mutex
	avoided map[netip.AddrPort]time.Time // until when
}

const (
	// avoidFor is for how long a server is tried last.
	avoidFor = 30 * time.Second
	// lookUpTimeout bounds how long it may take to find the addresses.
	lookUpTimeout = 10 * time.Second
	// maxAddresses is how many addresses one connection tries. gRPC begins with another one four times a second.
	maxAddresses = 16
	// balancedScheme is the scheme of targets whose addresses a balancer finds. The name that a certificate must have is still
	// that of the target.
	balancedScheme = "vedette-servers"
)

func newBalancer(lookUp func(context.Context) ([]string, error)) *balancer {
	return &balancer{lookUp: lookUp, avoided: map[netip.AddrPort]time.Time{}}
}

// avoid makes later connections try a server last.
func (b *balancer) avoid(server netip.AddrPort, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropExpiredLocked(now)
	b.avoided[server] = now.Add(avoidFor)
}

func (b *balancer) dropExpiredLocked(now time.Time) {
	for server, until := range b.avoided {
		if !now.Before(until) {
			delete(b.avoided, server)
		}
	}
}

// order returns addresses in the order in which to try them.
func (b *balancer) order(addresses []string, now time.Time) []string {
	order := slices.Clone(addresses)
	slices.Sort(order)
	order = slices.Compact(order)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropExpiredLocked(now)
	slices.SortStableFunc(order, func(x, y string) int { return b.avoidedLocked(x).Compare(b.avoidedLocked(y)) })
	return order[:min(len(order), maxAddresses)]
}

// avoidedLocked returns until when a server is tried last; zero if it is not.
func (b *balancer) avoidedLocked(address string) time.Time {
	return b.avoided[parseAddress(address)]
}

// parseAddress returns an address in the one form in which addresses are compared; zero if it is not an IP address and a port.
func parseAddress(text string) netip.AddrPort {
	address, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
}

// addressOf returns the address of the server of a stream that has received something; zero if it is unknown.
func addressOf(ctx context.Context) netip.AddrPort {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return netip.AddrPort{}
	}
	return parseAddress(p.Addr.String())
}

// Scheme implements resolver.Builder.
func (*balancer) Scheme() string { return balancedScheme }

// Build implements resolver.Builder. The addresses are looked up once, because each connection to a server has a client of its own.
func (b *balancer) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTimeout)
	r := &balancedResolver{cancel: cancel}
	r.lookUp.Go(func() {
		defer cancel()
		addresses, err := b.lookUp(ctx)
		if err != nil {
			cc.ReportError(err)
			return
		}
		var state resolver.State
		for _, address := range b.order(addresses, time.Now()) {
			state.Addresses = append(state.Addresses, resolver.Address{Addr: address})
		}
		_ = cc.UpdateState(state) // an error asks for another look-up, and the next connection does that
	})
	return r, nil
}

// balancedResolver is a look-up for one client.
type balancedResolver struct {
	cancel context.CancelFunc
	lookUp sync.WaitGroup
}

// ResolveNow implements resolver.Resolver.
func (*balancedResolver) ResolveNow(resolver.ResolveNowOptions) {}

// Close implements resolver.Resolver.
func (r *balancedResolver) Close() {
	r.cancel()
	r.lookUp.Wait()
}

// balanced returns the target, and the options, of a client that a balancer, or nil for none, serves.
func (b *balancer) balanced(target string) (string, []grpc.DialOption) {
	if b == nil {
		return target, nil
	}
	return balancedScheme + ":///" + target, []grpc.DialOption{grpc.WithResolvers(b)}
}
