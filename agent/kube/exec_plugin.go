package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
)

const (
	maxCredentialBytes = 1 << 20 // bytes of stdout that are read
	maxStderrBytes     = 1 << 10 // bytes of stderr that are reported
)

// execPlugin is the exec plugin of a kubeconfig.
type execPlugin struct {
	command string
	args    []string
	env     []string
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
	p := &execPlugin{command: e.Command, args: e.Args, version: e.APIVersion}
	for _, v := range e.Env {
		p.env = append(p.env, v.Name+"="+v.Value)
	}
	p.env = append(p.env, "KUBERNETES_EXEC_INFO="+string(encoded))
	return p, nil
}

// run runs the plugin until it ends or ctx does. It then kills all processes that the
// plugin started.
func (p *execPlugin) run(ctx context.Context) (*execCredentials, error) {
	cmd := exec.CommandContext(ctx, p.command, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	stdout, stderr := &prefixBuffer{limit: maxCredentialBytes}, &prefixBuffer{limit: maxStderrBytes}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = 2 * time.Second // for child processes that keep its output open
	killGroup(cmd)
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // the plugin itself succeeded and had printed everything
		err = nil
	}
	message := strings.ToValidUTF8(strings.TrimSpace(stderr.String()), "?")
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("exec plugin %s did not end in time and was killed: %w", p.command, ctx.Err())
	case err != nil && message != "":
		return nil, fmt.Errorf("run exec plugin %s: %w: %s", p.command, err, message)
	case err != nil:
		return nil, fmt.Errorf("run exec plugin %s: %w", p.command, err)
	}
	creds, err := p.parse(stdout.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read the output of exec plugin %s: %w", p.command, err)
	}
	return creds, nil
}

// parse reads an ExecCredential. Errors never contain any of its content.
func (p *execPlugin) parse(printed []byte) (*execCredentials, error) {
	var answer clientauthentication.ExecCredential
	if err := json.Unmarshal(printed, &answer); err != nil {
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

// prefixBuffer keeps the first limit bytes that are written to it.
type prefixBuffer struct {
	bytes.Buffer
	limit int
}

// Write accepts all of b and keeps what fits.
func (h *prefixBuffer) Write(b []byte) (int, error) {
	_, _ = h.Buffer.Write(b[:max(0, min(len(b), h.limit-h.Len()))]) // bytes.Buffer does not fail
	return len(b), nil
}

// ReadFrom hides bytes.Buffer.ReadFrom, with which io.Copy would bypass Write.
func (h *prefixBuffer) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{h}, r)
}
