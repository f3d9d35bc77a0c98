package discover

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
)

// Server is a server that may exist.
type Server struct {
	// ID is the name of the server's pod, or its host name; the IP address if nothing names it.
	ID vedette.ServerID
	// BaseURL is that of the REST API, without a slash at the end: http://10.0.0.1:7002.
	BaseURL string
	// Address is the IP address in BaseURL, or to which its name is expected to resolve.
	Address netip.Addr
	// Ready reports whether the server takes requests.
	Ready bool
	// LastUpdated is when the server was last known to be as shown, by the clock of this process. While the source does not answer, it
	// stays as it is.
	LastUpdated time.Time
}

// isSame reports whether two lists differ at most in when they were updated.
func isSame(a, b []Server) bool {
	return slices.EqualFunc(a, b, func(x, y Server) bool {
		x.LastUpdated, y.LastUpdated = time.Time{}, time.Time{}
		return x == y
	})
}

// sorted returns a copy in the order of IDs. It is never nil.
func sorted(servers []Server) []Server {
	all := append([]Server{}, servers...)
	slices.SortStableFunc(all, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// baseURL returns the URL of a host and a port.
func baseURL(scheme, host string, port uint16) string {
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// SchemeOf returns the scheme of a port with or without TLS.
func SchemeOf(isTLS bool) string {
	if isTLS {
		return "https"
	}
	return "http"
}

// AddressURL returns the address and the URL at which other machines find a server that listens on an address. If it listens on all
// addresses, this is the first one of this machine that others can use, or the loopback address if there is none.
func AddressURL(isTLS bool, listening net.Addr) (netip.Addr, string) {
	addressAndPort, err := netip.ParseAddrPort(listening.String())
	if err != nil { // not of TCP
		return netip.Addr{}, ""
	}
	address := addressAndPort.Addr().Unmap().WithZone("")
	if address.IsUnspecified() {
		address = hostAddress()
	}
	return address, baseURL(SchemeOf(isTLS), address.String(), addressAndPort.Port())
}

func hostAddress() netip.Addr {
	all, _ := net.InterfaceAddrs() // without them only the loopback address is known
	addresses := make([]netip.Addr, 0, len(all))
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && isUsable(prefix.Addr()) {
			addresses = append(addresses, prefix.Addr().Unmap())
		}
	}
	if len(addresses) == 0 {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return slices.MinFunc(addresses, compareAddresses)
}

// isUsable reports whether an address can be that of another machine.
func isUsable(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsValid() && a.Zone() == "" && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast() && !a.IsLinkLocalUnicast()
}

// compareAddresses has IPv4 first.
func compareAddresses(a, b netip.Addr) int { return a.Compare(b) }
