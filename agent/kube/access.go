package kube

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/cloud"
	"github.com/vedette-io/vedette/internal/nearest"
)

// Access describes how to reach a cluster. The first of InCluster, Cloud, KubeconfigContents
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
	// Cloud is how to reach a cluster without a kubeconfig, if it has a provider, and otherwise who gets the tokens of kubeconfigs with exec.
	Cloud cloud.Cluster
}

func (a Access) usesCloud() bool { return a.Cloud.HasProvider() && !a.InCluster }

// defaultNamespace is the namespace of objects without one if the kubeconfig names none.
const defaultNamespace = "default"

// restConfig reads the files that a names, except token files, which client-go reads again and
// again. It does not dial. The namespace is that of objects without one.
func (a Access) restConfig() (cfg *rest.Config, namespace string, err error) {
	cfg, namespace, err = a.load()
	if err != nil {
		return nil, "", err
	}
	useUserinfo(cfg)
	if a.Insecure {
		cfg.Insecure = true
		cfg.CAData = nil
		cfg.CAFile = ""
	}
	if a.NoProxy {
		cfg.Proxy = noProxy
	}
	if a.OAuthServiceAccount != "" {
		removeCredentials(cfg)
	}
	if err := readNamedFiles(cfg); err != nil {
		return nil, "", err
	}
	return cfg, namespace, a.checkExec(cfg)
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
	case a.usesCloud():
		cfg = &rest.Config{Host: a.Cloud.Server}
		cfg.CAFile, cfg.CAData = a.Cloud.CertificateAuthorityFile, a.Cloud.AuthorityData()
		return cfg, defaultNamespace, nil
	case len(a.KubeconfigContents) > 0:
		raw, err := clientcmd.Load(a.KubeconfigContents)
		if err != nil {
			return nil, "", vedette.Errorf(vedette.Invalid, "read kubeconfigContents: %w", err)
		}
		return a.selectContext(newKubeconfig(raw, "kubeconfigContents"))
	}
	k, err := LoadKubeconfig(a.KubeconfigFile)
	if err != nil {
		return nil, "", err
	}
	return a.selectContext(k)
}

// Kubeconfig is what one file has, or several together.
type Kubeconfig struct {
	Contexts []string // their names, sorted
	Current  string   // the name of the current context; may be empty, or that of no context

	source string // what it is, for messages
	raw    *clientcmdapi.Config
}

func newKubeconfig(raw *clientcmdapi.Config, source string) Kubeconfig {
	return Kubeconfig{Contexts: slices.Sorted(maps.Keys(raw.Contexts)), Current: raw.CurrentContext, source: source, raw: raw}
}

// LoadKubeconfig reads a file, or without a name the files that kubectl reads.
func LoadKubeconfig(file string) (Kubeconfig, error) {
	if file == "" {
		raw, files, err := kubeconfigs.loadMerged()
		if err != nil {
			return Kubeconfig{}, vedette.Errorf(vedette.Invalid, "read the default kubeconfig: %w", err)
		}
		return newKubeconfig(raw, describeFiles(files)), nil
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return Kubeconfig{}, vedette.Errorf(vedette.Invalid, "kubeconfig file %s does not exist: %w", file, err)
	}
	raw, err := kubeconfigs.load(file)
	if err != nil {
		return Kubeconfig{}, vedette.Errorf(vedette.Invalid, "read kubeconfig file %s: %w", file, err)
	}
	return newKubeconfig(raw, "kubeconfig file "+file), nil
}

// describeFiles names the files of a kubeconfig, and says which of them do not exist.
func describeFiles(files []string) string {
	var described []string
	for _, file := range files {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			file += " (which does not exist)"
		}
		described = append(described, file)
	}
	if len(files) == 1 {
		return "kubeconfig file " + described[0]
	}
	return "kubeconfig of the files " + nearest.List(described)
}

// ChooseContext returns the context with a name, or without a name the current or the only one.
func (k Kubeconfig) ChooseContext(name string) (string, error) {
	isCurrent := name == ""
	name = cmp.Or(name, k.Current)
	switch {
	case len(k.Contexts) == 0:
		return "", vedette.Errorf(vedette.Invalid, "%s has no contexts", k.source)
	case name == "" && len(k.Contexts) == 1:
		return k.Contexts[0], nil
	case name == "":
		return "", vedette.Errorf(vedette.Invalid, "%s has no current-context: choose one of its contexts (%s)", k.source,
			nearest.List(k.Contexts))
	case k.raw.Contexts[name] == nil && isCurrent:
		return "", vedette.Errorf(vedette.Invalid, "%s has the current-context %q, but no such context: it has %s", k.source, name, nearest.List(k.Contexts))
	case k.raw.Contexts[name] == nil:
		return "", vedette.Errorf(vedette.Invalid, "%s has no context %q: it has %s", k.source, name, nearest.ListFor(name, k.Contexts))
	}
	return name, nil
}

// selectContext returns the configuration of one context of a kubeconfig, and its
// namespace.
func (a Access) selectContext(k Kubeconfig) (*rest.Config, string, error) {
	name, err := k.ChooseContext(a.Context)
	if err != nil {
		return nil, "", err
	}
	single := singleContext(*k.raw, name)
	if err := checkNamedFiles(single); err != nil {
		return nil, "", err
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(single, name, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, "use context %q of %s: %w", name, k.source, err)
	}
	return cfg, cmp.Or(k.raw.Contexts[name].Namespace, defaultNamespace), nil
}

// checkExec checks that the exec plugin can be run, if the agent does not get its token itself, because otherwise every feed would fail
// with an error of its own.
func (a Access) checkExec(cfg *rest.Config) error {
	e := cfg.ExecProvider
	if e == nil {
		return nil
	}
	source, problem := a.tokenSource(cfg)
	if source != nil {
		return nil
	}
	if e.InteractiveMode == clientcmdapi.AlwaysExecInteractiveMode {
		return vedette.Errorf(vedette.Invalid, "the kubeconfig uses exec plugin %q: interactiveMode is Always, but an agent has no terminal: "+
			"use a token, a certificate or another plugin", e.Command)
	}
	_, err := exec.LookPath(e.Command)
	switch {
	case err != nil && problem != nil:
		err = fmt.Errorf("%w, and %w", err, problem)
	case problem != nil:
		return vedette.Errorf(vedette.Invalid, "the kubeconfig uses exec plugin %q: %w: set cloud.tokens of the account to program", e.Command, problem)
	}
	if err != nil {
		return vedette.Errorf(vedette.Invalid,
			"the kubeconfig uses exec plugin %q, which cannot be run here (%w): install it beside the agent (agent.initContainers of the chart), or use a token or a certificate",
			e.Command, err)
	}
	return nil
}
