package kube

import (
	"fmt"
	"net/http"
	"os"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vedette-io/vedette"
)

// maxFileBytes bounds a kubeconfig, and each file that it names. A kubeconfig of 1,000 clusters has
// some 6 MB.
const maxFileBytes = 16 << 20

// checkFile returns an error if a file cannot be read as a whole: reading a named pipe may wait
// for ever, and reading a device may never end. Libraries would read both, and harm all accounts of
// the agent.
func checkFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	return checkFileInfo(path, info)
}

func checkFileInfo(path string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a directory: name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxFileBytes:
		return fmt.Errorf("%s has %d bytes, the maximum is %d", path, info.Size(), maxFileBytes)
	}
	return nil
}

// checkNamedFiles checks the files that a kubeconfig with one context names. Files that are missing or
// cannot be read are left to clientcmd, which selectContext asks next and which reports them.
func checkNamedFiles(single clientcmdapi.Config) error {
	var files []string
	for _, cluster := range single.Clusters {
		files = append(files, cluster.CertificateAuthority)
	}
	for _, user := range single.AuthInfos {
		files = append(files, user.ClientCertificate, user.ClientKey, user.TokenFile)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			continue
		}
		if err := checkFileInfo(file, info); err != nil {
			return vedette.Errorf(vedette.Invalid, "read a file named in the kubeconfig: %w", err)
		}
	}
	return nil
}

// readNamedFiles replaces the certificates and keys that cfg names by their content. Otherwise client-go would
// read the files again at each handshake, and use content that no rotation has verified. The name of the CA
// stays for error messages.
func readNamedFiles(cfg *rest.Config) error {
	t := &cfg.TLSClientConfig
	for _, named := range []struct {
		file string
		data *[]byte
	}{{t.CAFile, &t.CAData}, {t.CertFile, &t.CertData}, {t.KeyFile, &t.KeyData}} {
		if named.file == "" || len(*named.data) > 0 {
			continue
		}
		content, err := readNamedFile(named.file)
		if err != nil {
			return vedette.Errorf(vedette.Invalid, "read a file named in the kubeconfig: %w", err)
		}
		*named.data = content
	}
	t.CertFile, t.KeyFile = "", ""
	return nil
}

func readNamedFile(file string) ([]byte, error) {
	if err := checkFile(file); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(file)
	if err == nil && len(content) == 0 { // client-go would go on without it
		err = fmt.Errorf("%s is empty", file)
	}
	return content, err
}

// proxyOf returns the address of the kubeconfig's proxy, with its password; empty if there is none.
func proxyOf(cfg *rest.Config) string {
	if cfg.Proxy == nil {
		return ""
	}
	base, err := baseURL(cfg)
	if err != nil {
		return ""
	}
	proxy, err := cfg.Proxy(&http.Request{URL: base})
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.String()
}
