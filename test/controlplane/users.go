//go:build unix

package controlplane

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// UserKubeconfig writes a kubeconfig for a user with a client certificate, and returns its path.
// The user has the rights that RBAC grants to the name and the groups. At first these are only
// those of system:authenticated: to read /version and the API discovery, and to query its own
// rights.
func (p *Plane) UserKubeconfig(name string, groups ...string) (string, error) {
	kubeconfig, err := p.certKubeconfig(name, groups...)
	if err != nil {
		return "", err
	}
	return p.writeKubeconfig("user", name, kubeconfig)
}

// UserClient returns an HTTP client of a user, as in UserKubeconfig.
func (p *Plane) UserClient(name string, groups ...string) (*http.Client, error) {
	return p.pki.client(name, groups...)
}

// ServiceAccountKubeconfig writes a kubeconfig with a new token of an existing
// ServiceAccount, valid for an hour, and returns its path.
func (p *Plane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	token, err := p.ServiceAccountToken(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	kubeconfig := p.kubeconfig(name, "token: "+token)
	return p.writeKubeconfig("serviceaccount", namespace+"."+name, kubeconfig)
}

// ServiceAccountToken returns a new token of an existing ServiceAccount, valid for an hour.
func (p *Plane) ServiceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	var answer struct{ Status struct{ Token string } }
	path := fmt.Sprintf("/api/v1/namespaces/%s/serviceaccounts/%s/token", namespace, name)
	body := Object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
	if err := p.do(ctx, apiRequest{http.MethodPost, path, "application/json", body}, &answer); err != nil {
		return "", fmt.Errorf("create a token: %w", err)
	}
	return answer.Status.Token, nil
}

// KubeletCertificate writes the certificate of the kubelet of a node at the address Options.Kubelet, and its key, and returns their
// paths.
func (p *Plane) KubeletCertificate(node string) (cert, key string, err error) {
	made, err := p.pki.kubeletPair(node)
	if err != nil {
		return "", "", err
	}
	cert, key = p.path("kubelet-"+node+".crt"), p.path("kubelet-"+node+".key")
	if err := errors.Join(os.WriteFile(cert, made.cert, 0o600), os.WriteFile(key, made.key, 0o600)); err != nil {
		return "", "", fmt.Errorf("write the certificate of the kubelet: %w", err)
	}
	return cert, key, nil
}

func (p *Plane) certKubeconfig(name string, groups ...string) ([]byte, error) {
	user, err := p.pki.clientPair(name, groups...)
	if err != nil {
		return nil, err
	}
	encode := base64.StdEncoding.EncodeToString
	credentials := "client-certificate-data: " + encode(user.cert) + "\n    client-key-data: " + encode(user.key)
	return p.kubeconfig(name, credentials), nil
}

// kubeconfig returns a kubeconfig that needs no other files. The credentials are lines of YAML,
// indented by four spaces from the second line on.
func (p *Plane) kubeconfig(user, credentials string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: plane
contexts:
- name: plane
  context: {cluster: plane, user: %[1]q}
clusters:
- name: plane
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
users:
- name: %[1]q
  user:
    %[4]s
`, user, p.URL, base64.StdEncoding.EncodeToString(p.pki.caPEM), credentials)
}

// writeKubeconfig writes a kubeconfig to a file named after its user. Characters with a meaning in
// paths, as in system:node:a, become dashes.
func (p *Plane) writeKubeconfig(kind, name string, content []byte) (string, error) {
	name = strings.NewReplacer("/", "-", ":", "-").Replace(name)
	path := p.path("kubeconfig-" + kind + "-" + name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	return path, nil
}
