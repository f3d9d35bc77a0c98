package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/discover"
)

// TestDiscoveryModes checks what each value of the predecessor's key means, and what the start says about it.
func TestDiscoveryModes(t *testing.T) {
	for file, want := range map[string]struct {
		mode     discover.Mode
		warnings string
	}{
		"server.port: 7002":                  {discover.ModeLocal, ""},
		"kubesvc.cluster:":                   {discover.ModeLocal, ""},
		"kubesvc.cluster: none":              {discover.ModeLocal, ""},
		"cluster: local":                     {discover.ModeLocal, ""},
		"kubesvc.cluster: kubernetes":        {discover.ModeKubernetes, ""},
		"armory.kubesvc.cluster: Kubernetes": {discover.ModeKubernetes, ""},
		"kubesvc: {cluster: database}":       {discover.ModeSQL, ""},
		"kubesvc.cluster: redis":             {discover.ModeSQL, "does not use Redis"},
		"kubesvc: {cluster: kubernetes, cluster-kubernetes.verifySsl: false}": {discover.ModeKubernetes, "verifySsl is false"},
	} {
		c, err := parse("c.yml", []byte(file+"\nsql.url: postgres://u:p@db/vedette\n"), nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		warnings := strings.Join(c.Warnings(), "\n")
		if got := c.Discovery(func(string) string { return "" }).Mode; got != want.mode || !strings.Contains(warnings, want.warnings) || (warnings == "") != (want.warnings == "") {
			t.Errorf("%s: got mode %s and warnings %q, want %s and %q", file, got, warnings, want.mode, want.warnings)
		}
	}
	for file, want := range map[string]string{
		"kubesvc.cluster: consul": `"kubesvc.cluster" must be one of none, local, kubernetes, database, redis, got "consul"`,
		"kubesvc: {cluster: kubernetes, cluster-kubernetes.httpPortName: ''}":                 `"kubesvc.cluster-kubernetes.httpPortName" must not be empty`,
		"kubesvc: {cluster: kubernetes, cluster-kubernetes.clouddriverServiceNamePrefix: ''}": `"kubesvc.cluster-kubernetes.clouddriverServiceNamePrefix" must not be empty`,
		"kubesvc: {cluster: kubernetes, cluster-kubernetes.namespace: a/../b}":                `"kubesvc.cluster-kubernetes.namespace" must be the name of a namespace, got "a/../b"`,
	} {
		if _, err := parse("c.yml", []byte(file), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", file, err, want)
		}
	}
}

// TestDiscoverySettingsAreConverted checks that each of the predecessor's keys counts.
func TestDiscoverySettingsAreConverted(t *testing.T) {
	const prefix = "kubesvc.cluster: kubernetes\nkubesvc.cluster-kubernetes: "
	defaults := discover.KubernetesConfig{ServicePrefix: "spin-clouddriver", PortName: "http",
		ServiceAccount: discover.ServiceAccount{Host: "10.0.0.1", Port: "443", Dir: "/sa"}}
	for keys, change := range map[string]func(*discover.KubernetesConfig){
		"{kubeconfigFile: null, namespace: null}":                  func(*discover.KubernetesConfig) {},
		"{clouddriverServiceNamePrefix: vedette}":                  func(c *discover.KubernetesConfig) { c.ServicePrefix = "vedette" },
		"{httpPortName: rest}":                                     func(c *discover.KubernetesConfig) { c.PortName = "rest" },
		"{kubeconfigFile: file:/etc/kubeconfig}":                   func(c *discover.KubernetesConfig) { c.KubeconfigFile = "/etc/kubeconfig" },
		"{verifySsl: false}":                                       func(c *discover.KubernetesConfig) { c.SkipVerify = true },
		"{namespace: spinnaker}":                                   func(c *discover.KubernetesConfig) { c.Namespace = "spinnaker" },
		"{useDNS: true}":                                           func(c *discover.KubernetesConfig) { c.DomainName = "cluster.local" },
		"{useDNS: true, domainName: .example.com.}":                func(c *discover.KubernetesConfig) { c.DomainName = "example.com" },
		"{useDNS: false, domainName: example.com}":                 func(*discover.KubernetesConfig) {},
		"{failFast: false}":                                        func(c *discover.KubernetesConfig) { c.KeepRunning = true },
		"{}\nserver.ssl: {enabled: true, certFile: c, keyFile: k}": func(c *discover.KubernetesConfig) { c.IsTLS = true },
	} {
		c, err := parse("c.yml", []byte(prefix+keys), nil)
		if err != nil {
			t.Errorf("%s: %v", keys, err)
			continue
		}
		want := defaults
		change(&want)
		got := c.Discovery(func(name string) string {
			return map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "VEDETTE_SERVICE_ACCOUNT_DIR": "/sa"}[name]
		}).Kubernetes
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", keys, got, want)
		}
	}
}
