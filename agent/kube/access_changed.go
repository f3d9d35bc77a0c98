package kube

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/vedette-io/vedette"
)

// AccessChanged reports whether the files that a says how to reach the cluster by now
// say something else than when c was connected: another address, authority,
// certificate, token or program. An error says why what stands there can't be used;
// c goes on with what it has then. Files of tokens alone are read again anyway.
func (c *Cluster) AccessChanged(a Access) (bool, error) {
	cfg, err := a.restConfig()
	if err != nil {
		return false, err
	}
	digest, err := digestAccess(cfg)
	if err != nil || digest == c.accessDigest {
		return false, err
	}
	if _, err := newConnConfig(cfg, nil); err != nil {
		return false, vedette.Errorf(vedette.Invalid, "use the credentials for %s: %w", cfg.Host, err)
	}
	return true, nil
}

// digestAccess folds what counts of a configuration, and of the files that it names, into
// a digest.
func digestAccess(cfg *rest.Config) (digest [sha256.Size]byte, err error) {
	sum := sha256.New()
	t := cfg.TLSClientConfig
	fmt.Fprintf(sum, "%q %q %q %q %q %q %t %q %q %q %q", cfg.Host, cfg.APIPath, cfg.BearerToken, cfg.BearerTokenFile, cfg.Username, cfg.Password,
		t.Insecure, t.ServerName, t.CAData, t.CertData, t.KeyData)
	encoder := json.NewEncoder(sum)
	if err := encoder.Encode(cfg.Impersonate); err != nil {
		return digest, err
	}
	if e := cfg.ExecProvider; e != nil {
		fmt.Fprintf(sum, "%q %q %q %q %t", e.Command, e.Args, e.Env, e.APIVersion, e.ProvideClusterInfo)
	}
	for _, file := range []string{t.CAFile, t.CertFile, t.KeyFile} {
		if file == "" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return digest, vedette.Errorf(vedette.Invalid, "read a file that the kubeconfig names: %w", err)
		}
		fmt.Fprintf(sum, "%q %x", file, sha256.Sum256(content))
	}
	return [sha256.Size]byte(sum.Sum(nil)), nil
}
