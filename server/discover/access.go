package discover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/keypair"
)

// ServiceAccountDir is where Kubernetes mounts a pod's service account.
const ServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// ServiceAccount is how a program in a pod reaches its cluster.
type ServiceAccount struct {
	// Host and Port are those of the API server; empty outside of pods.
	Host, Port string
	// Dir is the directory of the service account; "" means ServiceAccountDir.
	Dir string
}

// access is a client of one API server.
type access struct {
	base      *url.URL
	client    *http.Client
	namespace string
	token     func() string // for messages only
}

// newAccess reads the kubeconfig or the service account. It sends nothing.
func newAccess(cfg KubernetesConfig) (*access, error) {
	load := inCluster
	if cfg.KubeconfigFile != "" {
		load = fromKubeconfig
	}
	config, namespace, err := load(cfg)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "vedette-server"
	if cfg.SkipVerify {
		config.Insecure = true
		config.CAFile, config.CAData = "", nil // which client-go refuses beside Insecure
	}
	if config.CAFile != "" && config.CAData == nil {
		if _, err := keypair.LoadCertPool(config.CAFile); err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "read the cluster's authorities: %w", err)
		}
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read the API server's address: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read the credentials for the API server: %w", err)
	}
	a := &access{base: base, namespace: cmp.Or(cfg.Namespace, namespace)}
	// A redirect would take the credentials to another host.
	a.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a.token = func() string {
		if config.BearerTokenFile == "" {
			return config.BearerToken
		}
		text, _ := os.ReadFile(config.BearerTokenFile) // without it the message names no account
		return strings.TrimSpace(string(text))
	}
	return a, nil
}

// inCluster returns the access of the pod's service account.
func inCluster(cfg KubernetesConfig) (*rest.Config, string, error) {
	s := cfg.ServiceAccount
	if s.Host == "" || s.Port == "" {
		return nil, "", vedette.Errorf(vedette.Invalid, "the server does not run in a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set): "+
			"set kubesvc.cluster-kubernetes.kubeconfigFile, or kubesvc.cluster to local or database")
	}
	dir := cmp.Or(s.Dir, ServiceAccountDir)
	const hint = "use the pod's service account: %w: check whether automountServiceAccountToken is off"
	token := filepath.Join(dir, "token")
	if _, err := os.Stat(token); err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, hint, err)
	}
	config := &rest.Config{Host: "https://" + net.JoinHostPort(s.Host, s.Port), BearerTokenFile: token}
	config.CAFile = filepath.Join(dir, "ca.crt")
	if cfg.Namespace != "" {
		return config, cfg.Namespace, nil
	}
	namespace, err := os.ReadFile(filepath.Join(dir, "namespace"))
	if err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, hint+", or set kubesvc.cluster-kubernetes.namespace", err)
	}
	if strings.TrimSpace(string(namespace)) == "" {
		return nil, "", vedette.Errorf(vedette.Invalid, "the file %s is empty: set kubesvc.cluster-kubernetes.namespace", filepath.Join(dir, "namespace"))
	}
	return config, strings.TrimSpace(string(namespace)), nil
}

// maxKubeconfigBytes is more than kubeconfigs of thousands of clusters have.
const maxKubeconfigBytes = 16 << 20

// fromKubeconfig returns the access of a kubeconfig's current context.
func fromKubeconfig(cfg KubernetesConfig) (*rest.Config, string, error) {
	file := cfg.KubeconfigFile
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", vedette.Errorf(vedette.Invalid, "the kubeconfig %s does not exist", file)
	case err != nil:
		return nil, "", vedette.Errorf(vedette.Invalid, "read the kubeconfig: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxKubeconfigBytes:
		return nil, "", vedette.Errorf(vedette.Invalid, "the kubeconfig %s is not a file of at most %d MiB", file, maxKubeconfigBytes>>20)
	}
	raw, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}).Load()
	if err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, "read the kubeconfig %s: %w", file, err)
	}
	if err := checkUser(raw); err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, "use the kubeconfig %s: %w", file, err)
	}
	client := clientcmd.NewDefaultClientConfig(*raw, &clientcmd.ConfigOverrides{})
	config, err := client.ClientConfig()
	if err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, "use the kubeconfig %s: %w", file, err)
	}
	namespace, _, err := client.Namespace()
	if err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, "use the kubeconfig %s: %w", file, err)
	}
	return config, namespace, nil
}

// checkUser rejects programs that print credentials, because nothing limits how long they run, and the server's image has none.
func checkUser(raw *clientcmdapi.Config) error {
	current := raw.Contexts[raw.CurrentContext]
	if current == nil {
		return fmt.Errorf("its current-context %q is not in it", raw.CurrentContext)
	}
	user := raw.AuthInfos[current.AuthInfo]
	if user != nil && (user.Exec != nil || user.AuthProvider != nil) {
		return fmt.Errorf("its user %q has exec or auth-provider, which the server does not run: use a token, a tokenFile or a client certificate", current.AuthInfo)
	}
	return nil
}

// answerError is a response of an API server that is not a success.
type answerError struct {
	status  int
	message string
}

// Error implements error. The message is quoted, because anybody may have sent it.
func (e *answerError) Error() string {
	text := fmt.Sprintf("the API server answered with status %d", e.status)
	if e.message != "" {
		text += fmt.Sprintf(" (%.300q)", e.message)
	}
	return text
}

// statusOf returns the status of an answerError, or 0.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*answerError](err); ok {
		return answer.status
	}
	return 0
}

// maxErrorBytes bounds what is read of a response that is an error.
const maxErrorBytes = 64 << 10

// maxAnswerBytes bounds answers other than lists and watches.
const maxAnswerBytes = 4 << 20

// send sends a request, and returns the response if it is a success.
func (a *access) send(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Response, error) {
	u := a.base.JoinPath(path)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request to the API server: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, a.unreachable(ctx, err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		failure := &answerError{status: response.StatusCode}
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes)) // the message is an extra
		var s status
		if exactjson.Unmarshal(text, &s, exactjson.Limits{}) == nil && s.Kind == "Status" {
			failure.message = s.Message
		}
		return nil, failure
	}
	return response, nil
}

// unreachable is the error of a request without an answer, or with one that breaks off. It leaves out the URL.
func (a *access) unreachable(ctx context.Context, err error) error {
	if failure, ok := errors.AsType[*url.Error](err); ok {
		err = failure.Err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return vedette.Errorf(vedette.Unavailable, "the API server %s did not answer: %w", a.base.Host, err)
}

// call sends a request and decodes the response. A nil body is a GET.
func (a *access) call(ctx context.Context, timeout time.Duration, path string, body, into any) error {
	ctx, cancel := withTimeout(ctx, timeout)
	defer cancel()
	method := http.MethodGet
	var text []byte
	if body != nil {
		method = http.MethodPost
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode a request to the API server: %w", err)
		}
	}
	response, err := a.send(ctx, method, path, nil, text)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(&limitedReader{response.Body, maxAnswerBytes})
	if err != nil {
		return a.unreachable(ctx, err)
	}
	if err := exactjson.Unmarshal(answer, into, exactjson.Limits{Bytes: maxDecodedBytes}); err != nil {
		return fmt.Errorf("read the API server's answer to %s: %w", path, err)
	}
	return nil
}

func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no whole answer within %s", timeout))
}

// errTooLarge ends an answer with something that no API server sends.
var errTooLarge = errors.New("a part of the answer is larger than objects can be")

// limitedReader fails when more than left is read. Whoever uses it may raise left.
type limitedReader struct {
	from io.Reader
	left int
}

// Read implements io.Reader.
func (r *limitedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errTooLarge
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}
