package kube

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vedette-io/vedette"
)

// Access describes how to reach a cluster. The first of InCluster, KubeconfigContents
// and KubeconfigFile that is set is used, as in Clouddriver. If none is set, the
// kubeconfig of kubectl is used.
type Access struct {
	KubeconfigFile     string
	KubeconfigContents []byte
	Context            string // empty for the kubeconfig's current-context
	InCluster          bool   // use the service account of the agent's pod
	ServiceAccountDir  string // the directory of that service account; empty for the usual one
	Insecure           bool   // do not verify the API server's certificate
	NoProxy            bool   // ignore HTTPS_PROXY and the kubeconfig's proxy-url
	// OAuthServiceAccount is a file with the key of a service account of Google, which replaces the
	// kubeconfig's credentials. OAuthScopes are the scopes of its tokens. Without
	// OAuthServiceAccount, they are those of the environment's credentials, for a kubeconfig without any.
	OAuthServiceAccount string
	OAuthScopes         []string
}

// defaultNamespace is the namespace of objects without one if the kubeconfig names none.
const defaultNamespace = "default"

// restConfig reads the files that a names. It does not dial. The namespace is that of
// objects without one.
func (a Access) restConfig() (cfg *rest.Config, namespace string, err error) {
	cfg, namespace, err = a.load()
	if err != nil {
		return nil, "", err
	}
	useUserinfo(cfg)
	if a.Insecure {
		cfg.Insecure, cfg.CAData, cfg.CAFile = true, nil, ""
	}
	if a.NoProxy {
		cfg.Proxy = noProxy
	}
	if a.OAuthServiceAccount != "" {
		removeCredentials(cfg)
	}
	return cfg, namespace, checkExec(cfg)
}

// useUserinfo removes user and password from the address of the API server, because the address
// identifies the cluster to everyone who reads accounts. They are the credentials if there are no
// others, as for kubectl.
func useUserinfo(cfg *rest.Config) {
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil || base.User == nil {
		return
	}
	if !hasCredentials(cfg) {
		cfg.Username = base.User.Username()
		cfg.Password, _ = base.User.Password()
	}
	base.User = nil
	cfg.Host = base.String()
}

func (a Access) load() (cfg *rest.Config, namespace string, err error) {
	switch {
	case a.InCluster:
		cfg, err = inCluster(a.ServiceAccountDir)
		return cfg, defaultNamespace, err
	case len(a.KubeconfigContents) > 0:
		raw, err := clientcmd.Load(a.KubeconfigContents)
		if err != nil {
			return nil, "", vedette.Errorf(vedette.Invalid, "read kubeconfigContents: %w", err)
		}
		return a.selectContext(*raw, "kubeconfigContents")
	case a.KubeconfigFile != "":
		return a.loadFile(a.KubeconfigFile)
	}
	raw, err := kubeconfigs.loadMerged()
	if err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, "read the default kubeconfig: %w", err)
	}
	return a.selectContext(*raw, "the default kubeconfig")
}

func (a Access) loadFile(file string) (*rest.Config, string, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, "", vedette.Errorf(vedette.Invalid, "kubeconfig file %s does not exist: %w", file, err)
	}
	raw, err := kubeconfigs.load(file)
	if err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, "read kubeconfig file %s: %w", file, err)
	}
	return a.selectContext(*raw, "kubeconfig file "+file)
}

// Contexts returns the sorted names of a kubeconfig's contexts and the name of the
// current one. If file is empty, it reads the kubeconfig of kubectl.
func Contexts(file string) (names []string, current string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	raw, err := rules.Load()
	if err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, "read the kubeconfig: %w", err)
	}
	return contextNames(*raw), raw.CurrentContext, nil
}

// selectContext returns the configuration of one context of a kubeconfig, and its
// namespace.
func (a Access) selectContext(raw clientcmdapi.Config, source string) (*rest.Config, string, error) {
	name := cmp.Or(a.Context, raw.CurrentContext)
	names := contextNames(raw)
	switch {
	case len(names) == 0:
		return nil, "", vedette.Errorf(vedette.Invalid, "%s has no contexts", source)
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "":
		return nil, "", vedette.Errorf(vedette.Invalid, "%s has no current-context: choose one of its contexts (%s)", source,
			strings.Join(names, ", "))
	case raw.Contexts[name] == nil:
		return nil, "", vedette.Errorf(vedette.Invalid, "%s has no context %q: choose one of %s", source, name, strings.Join(names, ", "))
	}
	single := singleContext(raw, name)
	if err := checkNamedFiles(single); err != nil {
		return nil, "", err
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(single, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, "use context %q of %s: %w", name, source, err)
	}
	return cfg, cmp.Or(raw.Contexts[name].Namespace, defaultNamespace), nil
}

func contextNames(raw clientcmdapi.Config) []string {
	names := make([]string, 0, len(raw.Contexts))
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// checkExec checks that the exec plugin can be run, because otherwise every feed
// would fail with an error of its own.
func checkExec(cfg *rest.Config) error {
	if cfg.ExecProvider == nil {
		return nil
	}
	if cfg.ExecProvider.InteractiveMode == clientcmdapi.AlwaysExecInteractiveMode {
		return vedette.Errorf(vedette.Invalid, "the kubeconfig uses exec plugin %q: %w: use a token, a certificate or another plugin",
			cfg.ExecProvider.Command, errInteractive)
	}
	if _, err := exec.LookPath(cfg.ExecProvider.Command); err != nil {
		return vedette.Errorf(vedette.Invalid,
			"the kubeconfig uses exec plugin %q, which cannot be run here (%w): install it beside the agent, or use a token or a certificate",
			cfg.ExecProvider.Command, err)
	}
	return nil
}
