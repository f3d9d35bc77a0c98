package kube

import (
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigs caches parsed kubeconfig files, because accounts check their files every
// 30 seconds and may share a file with many contexts, which takes long to parse.
var kubeconfigs = kubeconfigCache{parsed: map[string]*parsedKubeconfig{}}

type kubeconfigCache struct {
	mu     sync.Mutex // held while a file is parsed, so that other callers wait for the result
	parsed map[string]*parsedKubeconfig
	parses int // for tests
}

type parsedKubeconfig struct {
	file   os.FileInfo // its state before it was read
	read   time.Time
	config *clientcmdapi.Config
}

// modTimeResolution is how far apart two changes with the same modification time may be.
const modTimeResolution = 2 * time.Second

// load returns the content of a file. Callers share it and must not change it.
func (c *kubeconfigCache) load(path string) (*clientcmdapi.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	if last := c.parsed[path]; last != nil && last.isCurrent(info) {
		return last.config, nil
	}
	began := time.Now()
	c.parses++
	config, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}).Load()
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	c.parsed[path] = &parsedKubeconfig{info, began, config}
	return config, nil
}

// isCurrent reports whether the file is the one that was parsed. It returns false if the
// file was changed just before it was read, because it may have been changed again
// without a new modification time.
func (p *parsedKubeconfig) isCurrent(info os.FileInfo) bool {
	return os.SameFile(p.file, info) && p.file.Size() == info.Size() && p.file.ModTime().Equal(info.ModTime()) &&
		p.read.Sub(info.ModTime()) > modTimeResolution
}

// loadMerged returns the merged content of the files that kubectl reads.
func (c *kubeconfigCache) loadMerged() (*clientcmdapi.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	files := slices.DeleteFunc(slices.Clone(rules.Precedence), func(file string) bool { return file == "" })
	if len(files) != 1 {
		return rules.Load() //nolint:wrapcheck // it names the file
	}
	if _, err := os.Stat(files[0]); err != nil {
		return rules.Load() //nolint:wrapcheck // it names the file
	}
	return c.load(files[0])
}

// singleContext returns a copy of one context with its cluster and user, which callers
// may change.
func singleContext(raw clientcmdapi.Config, name string) clientcmdapi.Config {
	single := *clientcmdapi.NewConfig()
	kubeContext := raw.Contexts[name]
	single.CurrentContext, single.Contexts[name] = name, kubeContext.DeepCopy()
	if cluster := raw.Clusters[kubeContext.Cluster]; cluster != nil {
		single.Clusters[kubeContext.Cluster] = cluster.DeepCopy()
	}
	if user := raw.AuthInfos[kubeContext.AuthInfo]; user != nil {
		single.AuthInfos[kubeContext.AuthInfo] = user.DeepCopy()
	}
	return single
}
