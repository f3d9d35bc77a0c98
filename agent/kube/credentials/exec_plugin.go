package credentials

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"

	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vedette-io/vedette/internal/command"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// ExecPlugin is the exec plugin of a kubeconfig.
type ExecPlugin struct {
	command command.Command
	version string // the apiVersion of its ExecCredential
}

// NewExecPlugin returns an exec plugin. cluster describes the cluster to it; nil if it does not want that.
func NewExecPlugin(e *clientcmdapi.ExecConfig, cluster *clientauthentication.Cluster) (*ExecPlugin, error) {
	info := clientauthentication.ExecCredential{}
	info.APIVersion, info.Kind = e.APIVersion, "ExecCredential"
	info.Spec.Cluster = cluster
	encoded, err := json.Marshal(info)
	if err != nil {
		return nil, err
	}
	p := &ExecPlugin{command: command.Command{Program: e.Command, Args: e.Args}, version: e.APIVersion}
	for _, v := range e.Env {
		p.command.Env = append(p.command.Env, v.Name+"="+v.Value)
	}
	p.command.Env = append(p.command.Env, "KUBERNETES_EXEC_INFO="+string(encoded))
	return p, nil
}

// Run runs the plugin until it ends or ctx does. It then kills all processes that the
// plugin started.
func (p *ExecPlugin) Run(ctx context.Context) (*Credentials, error) {
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
func (p *ExecPlugin) parse(printed []byte) (*Credentials, error) {
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
	creds := &Credentials{Token: s.Token}
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
