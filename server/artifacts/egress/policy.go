// Package egress requests URLs that users name. It protects the server's own network: it connects
// only to addresses that a policy allows, bounds the size and the time of answers, and sends
// credentials only to the host that they are meant for.
package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// Policy decides to which addresses the server connects. The zero value denies addresses that
// belong to this machine or to its cloud provider, and allows everything else, private networks
// included: a company's Git server has a private address.
type Policy struct {
	// Allowed are networks that are allowed even if they are reserved.
	Allowed []netip.Prefix
	// Denied are networks that are denied in addition, unless Allowed has them too.
	Denied []netip.Prefix
	// Rejected are networks that are denied even if Allowed has them.
	Rejected []netip.Prefix
}

// reserved are the networks that are denied unless they are allowed: this machine, its link, and
// addresses at which cloud providers give credentials to every program that asks.
var reserved = []struct {
	network netip.Prefix
	what    string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address, where cloud providers serve metadata"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "an address of AWS' metadata service"},
	{netip.MustParsePrefix("fd20:ce::/32"), "an address of Google Cloud's metadata service"},
	{netip.MustParsePrefix("100.100.100.200/32"), "the address of Alibaba Cloud's metadata service"},
	{netip.MustParsePrefix("168.63.129.16/32"), "the address of Azure's metadata service"},
	{netip.MustParsePrefix("192.0.0.192/32"), "the address of Oracle Cloud's metadata service"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
}

// AddressError means that the policy denies an address.
type AddressError struct {
	Address netip.Addr
	Reason  string
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("connections to %s are denied: it is %s", e.Address, e.Reason)
}

// Check returns an AddressError if the policy denies an address. An IPv6 address that stands for
// an IPv4 address must be allowed as both.
func (p Policy) Check(address netip.Addr) error {
	address = address.WithZone("").Unmap()
	embedded := embeddedIPv4(address)
	isRejected := func(a netip.Addr) bool { return contains(p.Rejected, a) }
	if isRejected(address) || slices.ContainsFunc(embedded, isRejected) {
		return &AddressError{address, "an address that the account rejects"}
	}
	if contains(p.Allowed, address) {
		return nil
	}
	for _, e := range embedded {
		if err := p.Check(e); err != nil {
			return err
		}
	}
	for _, r := range reserved {
		if r.network.Contains(address) {
			return &AddressError{address, r.what}
		}
	}
	if contains(p.Denied, address) {
		return &AddressError{address, "in a denied network"}
	}
	return nil
}

func contains(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	localNAT  = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour = netip.MustParsePrefix("2002::/16")
	oldMapped = netip.MustParsePrefix("::/96")
)

// embeddedIPv4 returns the IPv4 addresses to which a gateway may translate an IPv6 address.
func embeddedIPv4(address netip.Addr) []netip.Addr {
	if !address.Is6() || address.IsUnspecified() || address.IsLoopback() {
		return nil
	}
	b := address.As16()
	switch {
	case nat64.Contains(address), oldMapped.Contains(address):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[12:]))}
	case localNAT.Contains(address):
		return translations(b)
	case sixToFour.Contains(address):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	}
	return nil
}

// translations returns the IPv4 addresses that an address of a local NAT64 can stand for. A site
// chooses the length of its prefix, which decides where the IPv4 address is (RFC 6052, 2.2). The
// ninth byte is never part of it, and is 0 unless the prefix has 96 bits. Addresses that begin with
// 0 are parts of the prefix, and lead nowhere.
func translations(b [16]byte) []netip.Addr {
	last := netip.AddrFrom4([4]byte(b[12:]))
	list := []netip.Addr{last}
	if withoutNinth := append(b[:8:8], b[9:]...); b[8] == 0 {
		for _, prefixBytes := range []int{6, 7, 8} {
			list = append(list, netip.AddrFrom4([4]byte(withoutNinth[prefixBytes:])))
		}
	}
	list = slices.DeleteFunc(list, func(a netip.Addr) bool { return a.As4()[0] == 0 })
	if len(list) == 0 {
		return []netip.Addr{last}
	}
	return list
}

// Control checks the address of each connection of a net.Dialer. It runs after the name was
// resolved and for the very address that is used, so that a name that resolves differently the
// second time gains nothing.
func (p Policy) Control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("check the address %q: %w", address, err)
	}
	return p.Check(target.Addr())
}
