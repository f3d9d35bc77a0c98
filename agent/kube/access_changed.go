package kube

import (
	"crypto/sha256"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/vedette-io/vedette"
)

// AccessChanged reports whether the files that a names have changed since Connect:
// another address, proxy, CA, certificate, token, exec plugin or namespace. It returns an error if
// the new content cannot be used; c then keeps the credentials that it has. Changes of
// token files do not count, because client-go reads these again by itself, and neither do those of
// a key of Google, which is read for each token.
func (c *Cluster) AccessChanged(a Access) (bool, error) {
	cfg, namespace, err := a.restConfig()
	if err != nil {
		return false, err
	}
	if _, err := a.tokenSource(cfg); err != nil {
		return false, err
	}
	if digestAccess(cfg) == c.usedAccess().digest && namespace == c.namespace {
		return false, nil
	}
	if _, err := newConnConfig(cfg, nil); err != nil {
		return false, vedette.Errorf(vedette.Invalid, "use the credentials for %s: %w", cfg.Host, err)
	}
	return true, nil
}

// digestAccess returns a digest of a configuration with the content of the files that it names.
func digestAccess(cfg *rest.Config) [sha256.Size]byte {
	sum := sha256.New()
	t, token := cfg.TLSClientConfig, cfg.BearerToken
	if cfg.BearerTokenFile != "" {
		token = "" // clientcmd fills it with the content of the file, which may change every hour
	}
	fmt.Fprintf(sum, "%q %q %q %q %q %q %t %q %q %q %q %q %q", cfg.Host, cfg.APIPath, token, cfg.BearerTokenFile, cfg.Username,
		cfg.Password, t.Insecure, t.ServerName, t.CAData, t.CertData, t.KeyData, cfg.Impersonate, proxyOf(cfg))
	if e := cfg.ExecProvider; e != nil {
		fmt.Fprintf(sum, "%q %q %q %q %t", e.Command, e.Args, e.Env, e.APIVersion, e.ProvideClusterInfo)
	}
	return [sha256.Size]byte(sum.Sum(nil))
}
