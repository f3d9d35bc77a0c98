package kube

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"

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
	if google := a.googleTokens(cfg); google != nil {
		if err := google.check(); err != nil {
			return false, err
		}
	}
	digest, err := digestAccess(cfg)
	if err != nil || digest == c.usedAccess().digest && namespace == c.namespace {
		return false, err
	}
	if _, err := newConnConfig(cfg, nil); err != nil {
		return false, vedette.Errorf(vedette.Invalid, "use the credentials for %s: %w", cfg.Host, err)
	}
	return true, nil
}

// digestAccess returns a digest of a configuration and of the files that it names.
func digestAccess(cfg *rest.Config) (digest [sha256.Size]byte, err error) {
	sum := sha256.New()
	t, token := cfg.TLSClientConfig, cfg.BearerToken
	if cfg.BearerTokenFile != "" {
		token = "" // clientcmd fills it with the content of the file, which may change every hour
	}
	fmt.Fprintf(sum, "%q %q %q %q %q %q %t %q %q %q %q", cfg.Host, cfg.APIPath, token, cfg.BearerTokenFile, cfg.Username,
		cfg.Password,
		t.Insecure, t.ServerName, t.CAData, t.CertData, t.KeyData)
	encoder := json.NewEncoder(sum)
	if err := encoder.Encode(cfg.Impersonate); err != nil {
		return digest, fmt.Errorf("hash the impersonation: %w", err)
	}
	fmt.Fprintf(sum, "%q", proxyOf(cfg))
	if e := cfg.ExecProvider; e != nil {
		fmt.Fprintf(sum, "%q %q %q %q %t", e.Command, e.Args, e.Env, e.APIVersion, e.ProvideClusterInfo)
	}
	for _, file := range []string{t.CAFile, t.CertFile, t.KeyFile} {
		if file == "" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return digest, vedette.Errorf(vedette.Invalid, "read a file named in the kubeconfig: %w", err)
		}
		fmt.Fprintf(sum, "%q %x", file, sha256.Sum256(content))
	}
	return [sha256.Size]byte(sum.Sum(nil)), nil
}
