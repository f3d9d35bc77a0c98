package egress_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/vedette-io/vedette/server/artifacts/egress"
)

func TestInternalAddressesAreDenied(t *testing.T) {
	policy := egress.Policy{
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32"), netip.MustParsePrefix("10.1.2.0/24")},
		Denied:  []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")},

		Rejected: []netip.Prefix{netip.MustParsePrefix("10.1.2.9/32")},
	}
	for _, tt := range []struct {
		name, address string
		allowed       bool
	}{
		{"a public address", "140.82.121.4", true},
		{"a public IPv6 address", "2606:50c0:8000::64", true},
		{"a private address", "192.168.1.10", true},
		{"a unique local address", "fd12:3456::1", true},
		{"loopback", "127.0.0.1", false},
		{"another loopback address", "127.8.8.8", false},
		{"an allowed loopback address", "127.0.0.9", true},
		{"IPv6 loopback", "::1", false},
		{"metadata", "169.254.169.254", false},
		{"ECS credentials", "169.254.170.2", false},
		{"IPv6 metadata of AWS", "fd00:ec2::254", false},
		{"IPv6 metadata of Google", "fd20:ce::254", false},
		{"metadata of Alibaba", "100.100.100.200", false},
		{"metadata of Azure", "168.63.129.16", false},
		{"metadata of Oracle", "192.0.0.192", false},
		{"link-local", "fe80::1", false},
		{"link-local with a zone", "fe80::1%eth0", false},
		{"unspecified", "0.0.0.0", false},
		{"this network", "0.1.2.3", false},
		{"unspecified IPv6", "::", false},
		{"multicast", "239.1.1.1", false},
		{"IPv6 multicast", "ff02::1", false},
		{"broadcast", "255.255.255.255", false},
		{"mapped loopback", "::ffff:127.0.0.1", false},
		{"mapped metadata", "::ffff:169.254.169.254", false},
		{"mapped, public", "::ffff:140.82.121.4", true},
		{"mapped, the old way", "::127.0.0.1", false},
		{"NAT64 of metadata", "64:ff9b::a9fe:a9fe", false},
		{"NAT64 of a public address", "64:ff9b::8c52:7904", true},
		{"local NAT64 of metadata, 48 bits", "64:ff9b:1:a9fe:a9:fe00::", false},
		{"local NAT64 of metadata, 56 bits", "64:ff9b:1:1a9:fe:a9fe::", false},
		{"local NAT64 of metadata, 64 bits", "64:ff9b:1:1:a9:fea9:fe00:0", false},
		{"local NAT64 of metadata, 96 bits", "64:ff9b:1:1::a9fe:a9fe", false},
		{"local NAT64 of a public address, 48 bits", "64:ff9b:1:8c52:79:400::", true},
		{"local NAT64 of a public address, 64 bits", "64:ff9b:1:1:8c:5279:400:0", true},
		{"local NAT64 of a public address, 96 bits", "64:ff9b:1::8c52:7904", true},
		{"local NAT64 of nothing", "64:ff9b:1::", false},
		{"rejected, local NAT64", "64:ff9b:1:1:a:102:900:0", false},
		{"6to4 of loopback", "2002:7f00:1::", false},
		{"denied in addition", "10.9.9.9", false},
		{"denied in addition, mapped", "::ffff:10.9.9.9", false},
		{"denied, but allowed more narrowly", "10.1.2.3", true},
		{"rejected, though allowed", "10.1.2.9", false},
		{"rejected, mapped", "::ffff:10.1.2.9", false},
		{"rejected, NAT64", "64:ff9b::a01:209", false},
		{"denied IPv6", "2001:db8::1", false},
	} {
		err := policy.Check(netip.MustParseAddr(tt.address))
		var denied *egress.AddressError
		if tt.allowed != (err == nil) || err != nil && !errors.As(err, &denied) {
			t.Errorf("%s (%s): got %v, want allowed %t", tt.name, tt.address, err, tt.allowed)
		}
	}
}

func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:80", "[::ffff:127.0.0.1]:80", "[fe80::1%eth0]:443", "localhost:80", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if err := (egress.Policy{}).Control("tcp", address, nil); err != nil {
			return
		}
		target := netip.MustParseAddrPort(address).Addr().Unmap()
		if target.IsLoopback() || target.IsLinkLocalUnicast() || target.IsUnspecified() || target.IsMulticast() {
			t.Errorf("%q is allowed", address)
		}
	})
}
