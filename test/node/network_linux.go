package node

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
)

// Addresses are those of RFC 5737 for examples, and those that clusters commonly use inside.
const (
	Name           = "node-1"
	podNetwork     = "10.244.0.0/24"
	dnsAddress     = "10.96.0.10"
	outsideAddress = "192.0.2.1"
	pluginDir      = "/usr/lib/cni" // of Debian's containernetworking-plugins
	outside        = "outside"      // network namespace of a machine that is not in the cluster
)

// Address is that of the node.
var Address = netip.MustParseAddr("192.0.2.10")

// prepareNetwork connects the node with a machine outside, which is its default route, and lets it forward what Pods send. The DNS
// server has an address of its own on the node, so that it needs no Pod.
func prepareNetwork() error {
	for _, command := range []string{
		"ip link set lo up",
		"ip netns add " + outside,
		"ip link add eth0 type veth peer name eth0 netns " + outside,
		"ip addr add " + Address.String() + "/24 dev eth0",
		"ip link set eth0 up",
		"ip -n " + outside + " addr add " + outsideAddress + "/24 dev eth0",
		"ip -n " + outside + " link set lo up",
		"ip -n " + outside + " link set eth0 up",
		"ip route add default via " + outsideAddress,
		"ip -n " + outside + " route add " + podNetwork + " via " + Address.String(),
		"ip addr add " + dnsAddress + "/32 dev lo",
	} {
		words := strings.Fields(command)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}
	for _, key := range []string{"ipv4/ip_forward", "bridge/bridge-nf-call-iptables"} {
		if err := os.WriteFile("/proc/sys/net/"+key, []byte("1"), 0o600); err != nil {
			return fmt.Errorf("prepare the network: %w", err)
		}
	}
	return nil
}

// Outside returns a command that runs on the machine that is not in the cluster. It reaches Pods by their addresses.
func Outside(cmd *exec.Cmd) *exec.Cmd {
	cmd.Args = append([]string{"ip", "netns", "exec", outside, cmd.Path}, cmd.Args[1:]...)
	if path, err := exec.LookPath("ip"); err == nil {
		cmd.Path = path
	}
	return cmd
}
