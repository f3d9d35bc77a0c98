package kube

import (
	"path/filepath"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
)

// Files returns the files that a names, directly and in its kubeconfig, and whose change
// AccessChanged notices. Token files are not among them, because client-go reads these again by
// itself. If the kubeconfig cannot be read, it is the only one.
func (a Access) Files() []string {
	files := a.kubeconfigFiles()
	if cfg, _, err := a.load(); err == nil {
		files = append(files, cfg.CAFile, cfg.CertFile, cfg.KeyFile)
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

func (a Access) kubeconfigFiles() []string {
	switch {
	case a.InCluster, a.usesCloud(), len(a.KubeconfigContents) > 0:
		return nil
	case a.KubeconfigFile != "":
		return []string{filepath.Clean(a.KubeconfigFile)}
	}
	return slices.Clone(clientcmd.NewDefaultClientConfigLoadingRules().Precedence)
}
