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
	maxCredentialBytes = 1 << 20 // bytes that a program may print
	maxStderrBytes     = 1 << 10 // bytes of its errors that are told
)

// execPlugin is the program by which a kubeconfig signs in.
type execPlugin struct {
	command string
	args    []string
	env     []string
	version string // of the API in which it answers
}

// newExecPlugin reads what a kubeconfig says of its program.
func newExecPlugin(cfg *rest.Config) (*execPlugin, error) {
	e := cfg.ExecProvider
	info := clientauthentication.ExecCredential{}
	info.APIVersion, info.Kind = e.APIVersion, "ExecCredential"
	if e.ProvideClusterInfo {
		cluster, err := rest.ConfigToExecCluster(cfg)
		if err != nil {
			return nil, err
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

// run runs the program until it ends or ctx does, with all that it started.
func (p *execPlugin) run(ctx context.Context) (*execCredentials, error) {
	cmd := exec.CommandContext(ctx, p.command, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	stdout, stderr := &prefixBuffer{limit: maxCredentialBytes}, &prefixBuffer{limit: maxStderrBytes}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.WaitDelay = 2 * time.Second // for what it started and left behind with its output open
	killGroup(cmd)
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well itself, and had printed all by then
		err = nil
	}
	message := strings.ToValidUTF8(strings.TrimSpace(stderr.String()), "?")
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not end in time and was ended: %w", p.command, ctx.Err())
	case err != nil && message != "":
		return nil, fmt.Errorf("run %s: %w: %s", p.command, err, message)
	case err != nil:
		return nil, fmt.Errorf("run %s: %w", p.command, err)
	}
	creds, err := p.parse(stdout.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read what %s printed: %w", p.command, err)
	}
	return creds, nil
}

// parse reads an ExecCredential. No error holds any of it.
func (p *execPlugin) parse(printed []byte) (*execCredentials, error) {
	var answer clientauthentication.ExecCredential
	if err := json.Unmarshal(printed, &answer); err != nil {
		return nil, fmt.Errorf("it is not JSON of an ExecCredential, in %d bytes", len(printed))
	}
	s := answer.Status
	switch {
	case answer.Kind != "ExecCredential" || answer.APIVersion != p.version:
		return nil, fmt.Errorf("it is a %.40q of %.60q, and an ExecCredential of %q was asked for", answer.Kind, answer.APIVersion, p.version)
	case s == nil || s.Token == "" && s.ClientCertificateData == "" && s.ClientKeyData == "":
		return nil, errors.New("it holds neither a token nor a certificate")
	}
	creds := &execCredentials{token: s.Token}
	if s.ExpirationTimestamp != nil {
		creds.expires = s.ExpirationTimestamp.Time
	}
	if s.ClientCertificateData != "" || s.ClientKeyData != "" {
		cert, err := tls.X509KeyPair([]byte(s.ClientCertificateData), []byte(s.ClientKeyData))
		if err != nil {
			return nil, errors.New("its certificate and key can't be read, or don't belong together")
		}
		creds.cert = &cert
	}
	return creds, nil
}

// prefixBuffer keeps the beginning of what is written to it.
type prefixBuffer struct {
	bytes.Buffer
	limit int
}

// Write takes all, and keeps what there is room for.
func (h *prefixBuffer) Write(b []byte) (int, error) {
	_, _ = h.Buffer.Write(b[:max(0, min(len(b), h.limit-h.Len()))]) // which does not fail
	return len(b), nil
}

// ReadFrom keeps io.Copy from going past Write.
func (h *prefixBuffer) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{h}, r)
}
