package kube

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"

	"github.com/vedette-io/vedette/internal/command"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// execPlugin is the exec plugin of a kubeconfig.
type execPlugin struct {
	command command.Command
	version string // the apiVersion of its ExecCredential
}

// newExecPlugin returns the exec plugin of cfg.
func newExecPlugin(cfg *rest.Config) (*execPlugin, error) {
	e := cfg.ExecProvider
	info := clientauthentication.ExecCredential{}
	info.APIVersion, info.Kind = e.APIVersion, "ExecCredential"
	if e.ProvideClusterInfo {
		cluster, err := rest.ConfigToExecCluster(cfg)
		if err != nil {
			return nil, fmt.Errorf("describe the cluster to the exec plugin: %w", err)
		}
		info.Spec.Cluster = &clientauthentication.Cluster{
			Server: cluster.Server, TLSServerName: cluster.TLSServerName, InsecureSkipTLSVerify: cluster.InsecureSkipTLSVerify,
			CertificateAuthorityData: cluster.CertificateAuthorityData, ProxyURL: cluster.ProxyURL, DisableCompression: cluster.DisableCompression,
		}
		if cluster.Config != nil {
			raw, err := json.Marshal(cluster.Config)
			if err != nil {
				return nil, err
			}
			info.Spec.Cluster.Config = runtime.RawExtension{Raw: raw}
		}
	}
	encoded, err := json.Marshal(info)
	if err != nil {
		return nil, err
	}
	p := &execPlugin{command: command.Command{Program: e.Command, Args: e.Args}, version: e.APIVersion}
	for _, v := range e.Env {
		p.command.Env = append(p.command.Env, v.Name+"="+v.Value)
	}
	p.command.Env = append(p.command.Env, "KUBERNETES_EXEC_INFO="+string(encoded))
	return p, nil
}

// run runs the plugin until it ends or ctx does. It then kills all processes that the
// plugin started.
func (p *execPlugin) run(ctx context.Context) (*execCredentials, error) {
	printed, err := p.command.Output(ctx)
	if err != nil {
		return nil, fmt.Errorf("exec plugin: %w", err)
	}
	creds, err := p.parse(printed)
	if err != nil {
		return nil, fmt.Errorf("read the output of exec plugin %s: %w", p.command.Program, err)
	}
	return creds, nil
}

// parse reads an ExecCredential. Errors never contain any of its content.
func (p *execPlugin) parse(printed []byte) (*execCredentials, error) {
	var answer clientauthentication.ExecCredential
	if err := exactjson.Unmarshal(printed, &answer, exactjson.Limits{}); err != nil {
		return nil, fmt.Errorf("%d bytes are not an ExecCredential in JSON", len(printed))
	}
	s := answer.Status
	switch {
	case answer.Kind != "ExecCredential" || answer.APIVersion != p.version:
		return nil, fmt.Errorf("got kind %.40q of %.60q, want ExecCredential of %q", answer.Kind, answer.APIVersion, p.version)
	case s == nil || s.Token == "" && s.ClientCertificateData == "" && s.ClientKeyData == "":
		return nil, errors.New("the ExecCredential has neither a token nor a certificate")
	}
	creds := &execCredentials{token: s.Token}
	if s.ExpirationTimestamp != nil {
		creds.expires = s.ExpirationTimestamp.Time
	}
	if s.ClientCertificateData != "" || s.ClientKeyData != "" {
		cert, err := tls.X509KeyPair([]byte(s.ClientCertificateData), []byte(s.ClientKeyData))
		if err != nil {
			return nil, errors.New("the certificate and the key are invalid or do not match")
		}
		creds.cert = &cert
	}
	return creds, nil
}
