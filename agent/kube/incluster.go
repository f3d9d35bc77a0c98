package kube

import (
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/vedette-io/vedette"
)

// serviceAccountDir is where Kubernetes mounts a pod's service account.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// inCluster reads the service account of the agent's pod. It differs from
// rest.InClusterConfig in that dir may be any directory, because
// VEDETTE_SERVICE_ACCOUNT_DIR may name one.
func inCluster(dir string) (*rest.Config, error) {
	if dir == "" {
		dir = serviceAccountDir
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, vedette.Errorf(vedette.Invalid,
			"use the service account of this pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so the agent does not run in a pod: serviceAccount works only inside a cluster, use kubeconfigFile elsewhere")
	}
	token := filepath.Join(dir, "token")
	if _, err := os.Stat(token); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "use the service account of this pod: %w: check whether automountServiceAccountToken is off",
			err)
	}
	cfg := &rest.Config{Host: "https://" + net.JoinHostPort(host, port), BearerTokenFile: token}
	cfg.CAFile = filepath.Join(dir, "ca.crt")
	return cfg, nil
}
