package kube

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigs caches parsed kubeconfig files, because accounts check their files every
// 30 seconds and may share a file with many contexts, which takes long to parse.
var kubeconfigs = kubeconfigCache{files: map[string]*kubeconfigFile{}}

type kubeconfigCache struct {
	mu    sync.Mutex
	files map[string]*kubeconfigFile
}

// kubeconfigFile is one file of the cache.
type kubeconfigFile struct {
	path string
	used time.Time // guarded by the lock of the cache

	mu     sync.Mutex        // held while the file is parsed, so that its other readers wait for the result
	parsed *parsedKubeconfig // nil before the first time
	parses int               // for tests
}

type parsedKubeconfig struct {
	file   os.FileInfo // its state before it was read
	read   time.Time
	config *clientcmdapi.Config
}

// modTimeResolution is how far apart two changes with the same modification time may be.
const modTimeResolution = 2 * time.Second

// maxUnused is for how long the cache keeps a file that nobody reads, for example because its account was
// removed.
const maxUnused = time.Hour

// file returns the entry of a file. Each has a lock of its own, because a file system that does not
// answer must not stop accounts with other files.
func (c *kubeconfigCache) file(path string) *kubeconfigFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	f := c.files[path]
	if f == nil {
		maps.DeleteFunc(c.files, func(_ string, other *kubeconfigFile) bool { return now.Sub(other.used) > maxUnused })
		f = &kubeconfigFile{path: path}
		c.files[path] = f
	}
	f.used = now
	return f
}

// load returns the content of a file. Callers share it and must not change it.
func (c *kubeconfigCache) load(path string) (*clientcmdapi.Config, error) {
	return c.file(path).load()
}

func (f *kubeconfigFile) load() (*clientcmdapi.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	if f.parsed != nil && f.parsed.isCurrent(info) {
		return f.parsed.config, nil
	}
	if err := checkFileInfo(f.path, info); err != nil {
		return nil, err
	}
	began := time.Now()
	f.parses++
	config, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.path}).Load()
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	f.parsed = &parsedKubeconfig{info, began, config}
	return config, nil
}

// isCurrent reports whether the file is the one that was parsed. It returns false if the
// file was changed just before it was read, because it may have been changed again
// without a new modification time.
func (p *parsedKubeconfig) isCurrent(info os.FileInfo) bool {
	return os.SameFile(p.file, info) && p.file.Size() == info.Size() && p.file.ModTime().Equal(info.ModTime()) &&
		p.read.Sub(info.ModTime()) > modTimeResolution
}

// loadMerged returns the merged content of the files that kubectl reads, and their names. Those that do not exist are empty.
func (c *kubeconfigCache) loadMerged() (config *clientcmdapi.Config, files []string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	files = slices.DeleteFunc(slices.Clone(rules.Precedence), func(file string) bool { return file == "" })
	for _, file := range files {
		if err := checkFile(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
	}
	if len(files) == 1 {
		if _, err := os.Stat(files[0]); err == nil {
			config, err = c.load(files[0])
			return config, files, err
		}
	}
	config, err = rules.Load()
	return config, files, err //nolint:wrapcheck // it names the file
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
