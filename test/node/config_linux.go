package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vedette-io/vedette/test/controlplane"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	clusterDomain    = "cluster.local"
)

// containerdConfig keeps images in the directory, because layers of containers cannot be on another overlay. A root without
// CAP_SYS_RESOURCE, as in some virtual machines, cannot protect processes from the kernel when memory ends.
func containerdConfig(dir string) string {
	return fmt.Sprintf(`version = 3
root = %q
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.blockfile", "io.containerd.nri.v1.nri"]

[grpc]
address = %q

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
pinned_images.sandbox = %q

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [%q]
conf_dir = %q

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
`, filepath.Join(dir, "containerd"), containerdSocket, podImage, pluginDir, filepath.Join(dir, "cni"))
}

// cniConfig connects Pods with a bridge. What they send out of the cluster keeps their addresses.
func cniConfig(dir string) string {
	return fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "node", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipam": {"type": "host-local", "dataDir": %q,
    "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`, filepath.Join(dir, "addresses"), podNetwork)
}

// kubeletConfig keeps the kubelet from removing Pods for the sake of a machine that has other work, too.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[1]q}
authorization: {mode: Webhook}
tlsCertFile: %[2]q
tlsPrivateKeyFile: %[3]q
clusterDNS: [%[4]q]
clusterDomain: %[5]q
resolvConf: %[6]q
cgroupDriver: cgroupfs
cgroupRoot: %[7]q
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://%[8]s
podLogsDir: %[9]q
volumePluginDir: %[10]q
evictionHard: {memory.available: 1Mi, nodefs.available: 1Mi, imagefs.available: 1Mi}
imageGCHighThresholdPercent: 100
syncFrequency: 5s
`

const kubeProxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: %q
clusterCIDR: %q
clientConnection: {kubeconfig: %q}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {minSyncPeriod: 100ms}
`

const corefile = `%s:53 {
    bind %s
    errors
    kubernetes %[1]s in-addr.arpa {
        kubeconfig %[3]s
    }
}
`

// writeConfigurations writes what the daemons read, with a user for each that has the rights of the cluster's own roles.
func (n *Node) writeConfigurations() error {
	cert, key, certErr := n.Plane.KubeletCertificate(Name)
	user, userErr := n.Plane.UserKubeconfig("system:node:"+Name, "system:nodes")
	proxy, proxyErr := n.Plane.UserKubeconfig("system:kube-proxy")
	if err := errors.Join(certErr, userErr, proxyErr); err != nil {
		return err
	}
	if err := os.Symlink(user, n.path("kubelet.kubeconfig")); err != nil {
		return fmt.Errorf("write the configuration of the kubelet: %w", err)
	}
	for name, content := range map[string]string{
		"resolv.conf": "",
		"kubelet.yaml": fmt.Sprintf(kubeletConfig, n.Plane.CA(), cert, key, dnsAddress, clusterDomain, n.path("resolv.conf"),
			"/"+filepath.Base(n.Dir), containerdSocket, n.path("pods"), n.path("volumeplugins")),
		"kube-proxy.yaml": fmt.Sprintf(kubeProxyConfig, Name, podNetwork, proxy),
		"Corefile":        fmt.Sprintf(corefile, clusterDomain, dnsAddress, n.Plane.Kubeconfig()),
	} {
		if err := os.WriteFile(n.path(name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write the configuration of the node: %w", err)
		}
	}
	return nil
}

// arguments returns those of a daemon.
func arguments(n *Node, name string) []string {
	switch name {
	case kubelet:
		return []string{"--config=" + n.path("kubelet.yaml"), "--kubeconfig=" + n.path("kubelet.kubeconfig"), "--hostname-override=" + Name,
			"--node-ip=" + Address.String(), "--root-dir=" + n.path("kubelet")}
	case kubeProxy:
		return []string{"--config=" + n.path("kube-proxy.yaml")}
	case coreDNS:
		return []string{"-conf", n.path("Corefile")}
	default: // kube-router, which only enforces NetworkPolicies
		return []string{"--kubeconfig=" + n.Plane.Kubeconfig(), "--hostname-override=" + Name, "--run-firewall=true", "--run-router=false",
			"--run-service-proxy=false", "--enable-cni=false", "--service-cluster-ip-range=" + controlplane.ServiceNetwork, "--health-port=0"}
	}
}
