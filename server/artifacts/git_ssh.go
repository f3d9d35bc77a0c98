package artifacts

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// sshAuth authenticates with a key, and checks the key of the host that the reference names.
type sshAuth struct {
	user    string
	signer  ssh.Signer // nil means no key
	timeout time.Duration
	hosts   *knownhosts.HostKeyDB // nil means that all hosts are trusted
	host    string                // with the port
}

func newSSHAuth(a GitAccount, timeout time.Duration, endpoint *transport.Endpoint) (*sshAuth, error) {
	port := endpoint.Port
	if port == 0 {
		port = 22
	}
	host := strings.Trim(endpoint.Host, "[]") // of an IPv6 address
	auth := &sshAuth{user: endpoint.User, timeout: timeout, host: net.JoinHostPort(host, strconv.Itoa(port))}
	if auth.user == "" {
		auth.user = "git"
	}
	var err error
	if auth.signer, err = sshSigner(a); err != nil {
		return nil, err
	}
	if !a.TrustUnknownHosts {
		auth.hosts, err = readKnownHosts(a.KnownHostsPath)
	}
	return auth, err
}

func sshSigner(a GitAccount) (ssh.Signer, error) {
	if a.SSHKeyPath == "" {
		return nil, nil //nolint:nilnil // the server may not require a key
	}
	path := strings.TrimPrefix(a.SSHKeyPath, "file:")
	key, err := readFile(path)
	if err != nil {
		return nil, err
	}
	var signer ssh.Signer
	if passphrase := a.passphrase(); passphrase == nil {
		signer, err = ssh.ParsePrivateKey(key)
	} else {
		phrase, secretErr := passphrase()
		if secretErr != nil {
			return nil, secretErr
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(key, []byte(phrase))
	}
	if err != nil {
		return nil, fmt.Errorf("the file %s is not a usable SSH key: %w", path, err)
	}
	return signer, nil
}

// readKnownHosts reads the keys of hosts. Without a path it reads the files that ssh reads.
func readKnownHosts(path string) (*knownhosts.HostKeyDB, error) {
	files := []string{strings.TrimPrefix(path, "file:")}
	if path == "" {
		files = nil
		home, _ := os.UserHomeDir()
		for _, file := range []string{filepath.Join(home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"} {
			if _, err := os.Stat(file); err == nil {
				files = append(files, file)
			}
		}
	}
	hosts, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, fmt.Errorf("read the keys of hosts: %w", err)
	}
	return hosts, nil
}

// clientConfig is what a session connects with.
func (a *sshAuth) clientConfig() *ssh.ClientConfig {
	config := &ssh.ClientConfig{User: a.user, Timeout: a.timeout}
	if a.signer != nil {
		config.Auth = []ssh.AuthMethod{ssh.PublicKeys(a.signer)}
	}
	if a.hosts == nil {
		config.HostKeyCallback = ssh.InsecureIgnoreHostKey() //nolint:gosec // the operator set sshTrustUnknownHosts
		return config
	}
	config.HostKeyAlgorithms = a.hosts.HostKeyAlgorithms(a.host)
	check := a.hosts.HostKeyCallback()
	config.HostKeyCallback = func(_ string, remote net.Addr, key ssh.PublicKey) error {
		if err := check(a.host, remote, key); err != nil {
			return fmt.Errorf("the key of %s is not known: add it to sshKnownHostsFilePath of the account: %w", a.host, err)
		}
		return nil
	}
	return config
}
