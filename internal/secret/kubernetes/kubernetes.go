// Package kubernetes reads Secrets of the cluster in which the program runs:
//
//	encrypted:k8s!n:SECRET!k:KEY!ns:NAMESPACE
//
// The namespace defaults to that of the pod. It needs one GET, so that the server, which has no
// library for Kubernetes, has this engine too.
package kubernetes

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/internal/secret"
)

// DefaultDir is where Kubernetes mounts a pod's service account.
const DefaultDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Engine reads Secrets as the service account of the pod.
type Engine struct {
	// Host and Port are those of the API server.
	Host, Port string
	// Dir is the directory of the service account.
	Dir string

	mu     sync.Mutex
	client *http.Client
	ca     string // for which client was made
}

// Locate implements secret.Engine.
func (e *Engine) Locate(r secret.Reference) (secret.Location, error) {
	params, err := r.Params([]string{"n", "k"}, []string{"ns"})
	if err != nil {
		return secret.Location{}, err
	}
	return secret.Location{
		Document: params["ns"] + "!" + params["n"],
		Fetch:    func(ctx context.Context) ([]byte, error) { return e.fetch(ctx, params["ns"], params["n"]) },
		Select:   func(document []byte) (string, error) { return selectKey(document, params["k"]) },
	}, nil
}

// selectKey returns a value of the Secret's data, which is base64.
func selectKey(document []byte, key string) (string, error) {
	data, err := secret.JSONKey(document, "data")
	if err != nil {
		return "", vedette.Errorf(vedette.NotFound, "the Secret has no data")
	}
	text, err := secret.JSONKey([]byte(data), key)
	if err != nil {
		return "", err
	}
	return secret.DecodeBase64(text)
}

func (e *Engine) fetch(ctx context.Context, namespace, name string) ([]byte, error) {
	if e.Host == "" || e.Port == "" {
		return nil, vedette.Errorf(vedette.Invalid,
			"this program does not run in a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set): references to k8s work only there")
	}
	if namespace == "" {
		text, err := e.read("namespace")
		if err != nil {
			return nil, err
		}
		namespace = text
	}
	token, err := e.read("token") // each time, because Kubernetes replaces it
	if err != nil {
		return nil, err
	}
	client, err := e.httpClient()
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "https", Host: net.JoinHostPort(e.Host, e.Port)}
	path := "/api/v1/namespaces/" + url.PathEscape(namespace) + "/secrets/" + url.PathEscape(name)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String()+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/json")
	document, err := secret.Do(client, r, notfound.Kubernetes)
	if vedette.KindOf(err) == vedette.Denied {
		return nil, vedette.Errorf(vedette.Denied, "%w: grant the pod's service account the verb get on this Secret in namespace %s", err, namespace)
	}
	return document, err
}

func (e *Engine) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(e.Dir, name))
	if err != nil {
		return "", vedette.Errorf(vedette.Invalid, "use the pod's service account: %w: check whether automountServiceAccountToken is off", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// httpClient returns a client that trusts the cluster's authority, and makes another one if that
// was replaced.
func (e *Engine) httpClient() (*http.Client, error) {
	ca, err := e.read("ca.crt")
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client != nil && e.ca == ca {
		return e.client, nil
	}
	pool, err := keypair.LoadCertPool(filepath.Join(e.Dir, "ca.crt"))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "use the pod's service account: %w", err)
	}
	tlsConfig := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	transport := &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true, MaxIdleConns: 1}
	e.client, e.ca = secret.NewHTTPClient(transport), ca
	return e.client, nil
}
