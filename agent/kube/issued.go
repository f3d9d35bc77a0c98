package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"

	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"

	"github.com/vedette-io/vedette/agent/cloud"
	"github.com/vedette-io/vedette/agent/kube/credentials"
)

// tokenSource returns what gets tokens for cfg from a cloud, or nil if cfg has other credentials. oAuthScopes alone is for kubeconfigs
// without credentials, or with the provider gcp, which client-go no longer has.
func (a Access) tokenSource(cfg *rest.Config) (*cloud.Source, error) {
	google := cloud.Google{KeyFile: a.OAuthServiceAccount, Scopes: a.OAuthScopes, ReadFile: readChecked}
	switch e := cfg.ExecProvider; {
	case a.usesCloud():
		return a.Cloud.Source(google)
	case a.OAuthServiceAccount != "" || len(a.OAuthScopes) > 0 && !hasCredentials(cfg):
		cfg.AuthProvider = nil
		return google.Source()
	case e == nil || a.Cloud.RunsProgram(isInstalled(e.Command)):
		return nil, nil //nolint:nilnil // most kubeconfigs have other credentials
	default:
		env := map[string]string{}
		for _, v := range e.Env {
			env[v.Name] = v.Value
		}
		return cloud.FromExec(cloud.Exec{Command: e.Command, Args: e.Args, Env: env})
	}
}

func isInstalled(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// Issuer says who issues the credentials, if they are neither in the kubeconfig nor in files that it names; otherwise "".
func (c *Cluster) Issuer() string {
	switch used := c.usedAccess(); {
	case used.source != nil:
		return used.source.String() + ": the agent gets tokens itself"
	case used.exec != nil:
		return "exec plugin " + used.cfg.ExecProvider.Command
	}
	return ""
}

// hasCredentials reports whether cfg has other credentials than those that Google issues.
func hasCredentials(cfg *rest.Config) bool {
	t := cfg.TLSClientConfig
	return cfg.BearerToken != "" || cfg.BearerTokenFile != "" || cfg.Username != "" || len(t.CertData) > 0 || t.CertFile != "" ||
		cfg.ExecProvider != nil || cfg.AuthProvider != nil && cfg.AuthProvider.Name != "gcp"
}

// removeCredentials removes what identifies the user, because oAuthServiceAccount replaces it, as in
// Clouddriver, which passes a token to kubectl.
func removeCredentials(cfg *rest.Config) {
	cfg.BearerToken = ""
	cfg.BearerTokenFile = ""
	cfg.Username = ""
	cfg.Password = ""
	cfg.ExecProvider, cfg.AuthProvider = nil, nil
	t := &cfg.TLSClientConfig
	t.CertData = nil
	t.CertFile = ""
	t.KeyData = nil
	t.KeyFile = ""
}

// describeToPlugin returns what the exec plugin of cfg wants to know of its cluster; nil for nothing.
func describeToPlugin(cfg *rest.Config) (*clientauthentication.Cluster, error) {
	if !cfg.ExecProvider.ProvideClusterInfo {
		return nil, nil //nolint:nilnil // most plugins want nothing
	}
	cluster, err := rest.ConfigToExecCluster(cfg)
	if err != nil {
		return nil, fmt.Errorf("describe the cluster to the exec plugin: %w", err)
	}
	described := &clientauthentication.Cluster{
		Server: cluster.Server, TLSServerName: cluster.TLSServerName, InsecureSkipTLSVerify: cluster.InsecureSkipTLSVerify,
		CertificateAuthorityData: cluster.CertificateAuthorityData, ProxyURL: cluster.ProxyURL, DisableCompression: cluster.DisableCompression,
	}
	if cluster.Config != nil {
		described.Config.Raw, err = json.Marshal(cluster.Config)
	}
	return described, err
}

// readChecked reads a file that can be read as a whole.
func readChecked(name string) ([]byte, error) {
	if err := checkFile(name); err != nil {
		return nil, err
	}
	return os.ReadFile(name) //nolint:wrapcheck // the caller names the setting
}

// authRoundTripper adds the credentials of an exec plugin, or of a cloud, to requests.
type authRoundTripper struct {
	auth *credentials.Cache
	next http.RoundTripper
}

// RoundTrip sends a request with the plugin's token.
func (t authRoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	creds, err := t.auth.Get(req.Context())
	if err != nil {
		return nil, &unsentError{err}
	}
	if creds.Token != "" && req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+creds.Token)
	}
	resp, err := t.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		t.auth.Invalidate(creds)
	}
	return resp, err
}
