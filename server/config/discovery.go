package config

import (
	"cmp"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/settings"
	"github.com/vedette-io/vedette/server/discover"
)

// ClusterKubernetes says which Services of a Kubernetes cluster have the servers. The server needs the rights to list and watch
// EndpointSlices in the namespace, or Endpoints where there are none.
type ClusterKubernetes struct {
	// What the names of the Services begin with.
	ServiceNamePrefix string `config:"clouddriverServiceNamePrefix" default:"spin-clouddriver"`
	// Name of the REST API's port in the Services.
	PortName string `config:"httpPortName" default:"http"`
	// File with a kubeconfig, whose current context is used. Its user must have a token or a client certificate. Default: the service
	// account of the server's pod.
	KubeconfigFile string `config:"kubeconfigFile"`
	// Verify the certificate of the API server.
	VerifySSL bool `config:"verifySsl" default:"true"`
	// Namespace of the Services. Default: that of the service account, or of the kubeconfig's context.
	Namespace string `config:"namespace"`
	// Show servers with the DNS names of their pods, as 10-0-0-1.namespace.pod.cluster.local, not with IP addresses.
	UseDNS bool `config:"useDNS" default:"false"`
	// Domain of the cluster, for useDNS.
	DomainName string `config:"domainName" default:"cluster.local"`
	// End the start if rights are missing, or if there are no servers for 30 seconds. If false, the table of servers in the database is used
	// while rights are missing.
	FailFast bool `config:"failFast" default:"true"`
}

// modes are the values of kubesvc.cluster.
var modes = map[string]discover.Mode{
	"": discover.ModeLocal, "none": discover.ModeLocal, "local": discover.ModeLocal, "kubernetes": discover.ModeKubernetes,
	"database": discover.ModeSQL, "redis": discover.ModeSQL,
}

func (k Kubesvc) mode() discover.Mode { return modes[strings.ToLower(k.Cluster)] }

// Discovery returns the configuration of package discover. getenv returns "" for a variable that is not set.
func (c *Config) Discovery(getenv func(string) string) discover.Config {
	k := c.Kubesvc.ClusterKubernetes
	kubernetes := discover.KubernetesConfig{ServicePrefix: k.ServiceNamePrefix, PortName: k.PortName, Namespace: k.Namespace,
		KubeconfigFile: settings.FilePath(k.KubeconfigFile), SkipVerify: !k.VerifySSL, KeepRunning: !k.FailFast, IsTLS: c.Server.SSL.Enabled,
		ServiceAccount: discover.ServiceAccount{Host: getenv("KUBERNETES_SERVICE_HOST"), Port: getenv("KUBERNETES_SERVICE_PORT"),
			Dir: getenv("VEDETTE_SERVICE_ACCOUNT_DIR")}}
	if k.UseDNS {
		kubernetes.DomainName = cmp.Or(strings.Trim(k.DomainName, "."), "cluster.local")
	}
	return discover.Config{Mode: c.Kubesvc.mode(), Kubernetes: kubernetes}
}

func (k Kubesvc) check(c configfile.Checker) {
	if k.mode() != discover.ModeKubernetes {
		return
	}
	c = c.At("cluster-kubernetes")
	s := k.ClusterKubernetes
	if s.ServiceNamePrefix == "" {
		c.Problem("clouddriverServiceNamePrefix", " must not be empty")
	}
	if s.PortName == "" {
		c.Problem("httpPortName", " must not be empty")
	}
	if name := s.Namespace; strings.ContainsAny(name, "/?#%. ") {
		c.Problem("namespace", " must be the name of a namespace, got %q", name)
	}
	settings.CheckFile("kubeconfigFile", s.KubeconfigFile, c)
}

func (k Kubesvc) redisWarning() string {
	if !strings.EqualFold(k.Cluster, "redis") {
		return ""
	}
	return "kubesvc.cluster is redis, but the server does not use Redis: servers find each other in the database. Set kubesvc.cluster to database"
}

func (k Kubesvc) verificationWarning() string {
	if k.mode() != discover.ModeKubernetes || k.ClusterKubernetes.VerifySSL {
		return ""
	}
	return "kubesvc.cluster-kubernetes.verifySsl is false: whoever is between the server and the API server gets the server's credentials for the cluster. " +
		"Set it to true, and name the cluster's authority in the kubeconfig"
}

// StaysAtServer reports whether accounts stay at the server of their agent, instead of moving to balance agents of several servers.
func (k Kubesvc) StaysAtServer() bool { return strings.EqualFold(k.LoadBalancer, "MN") }
