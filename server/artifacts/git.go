package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/internal/tempdir"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// GitAccount is an account of a Git server. It has a password or a token for HTTP, or a key for SSH, which is used only
// if it has neither.
type GitAccount struct {
	// Name of the account.
	Name string `config:"name"`
	// User, with password or token.
	Username string `config:"username"`
	// Password of the user.
	Password configfile.Secret `config:"password"`
	// File with user:password.
	UsernamePasswordFile string `config:"usernamePasswordFile"`
	// Access token.
	Token configfile.Secret `config:"token"`
	// File with an access token. It is used instead of token.
	TokenFile string `config:"tokenFile"`
	// File with a private key for SSH.
	SSHKeyPath string `config:"sshPrivateKeyFilePath"`
	// Passphrase of the private key.
	SSHKeyPassphrase configfile.Secret `config:"sshPrivateKeyPassphrase"`
	// Program that prints the passphrase of the private key. It is used instead of sshPrivateKeyPassphrase.
	SSHKeyPassphraseCommand string `config:"sshPrivateKeyPassphraseCmd"`
	// File with the keys of known hosts. Default: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts.
	KnownHostsPath string `config:"sshKnownHostsFilePath"`
	// Accept any key of any host. Whoever controls the network can then change what is deployed.
	TrustUnknownHosts bool `config:"sshTrustUnknownHosts" default:"false"`
	// Hosts that references may name, with their subdomains. Default: all.
	AllowedHosts []string `config:"allowedHosts"`
	// The server does not ask for tokens of GitHub Apps. Set tokenFile to a file that another program renews.
	GitHubApp configfile.Ignored `config:"githubApp,ignored,warn"`
}

func (a GitAccount) login() login {
	return newLogin(BasicLogin{a.Username, a.Password, a.UsernamePasswordFile}, TokenLogin{a.Token, a.TokenFile})
}

// passphrase returns that of the private key; nil if there is none.
func (a GitAccount) passphrase() Credential {
	if a.SSHKeyPassphraseCommand != "" {
		return command(a.SSHKeyPassphraseCommand)
	}
	return text(a.SSHKeyPassphrase)
}

// gitFetcher clones repositories and archives them.
type gitFetcher struct {
	config       GitAccount
	client       *egress.Client
	tempDir      string
	limits       packLimits
	memory, disk *fair.Line
}

const gitType = "git/repo"

// clonePattern is the name of directories with clones.
const clonePattern = "vedette-git-*"

// RemoveAbandonedClones removes the clones of servers that were killed, and returns how many. Other servers
// may have clones in the same directory.
func (c Config) RemoveAbandonedClones() int {
	return tempdir.RemoveAbandoned(c.Limits.TempDir, clonePattern)
}

func (a GitAccount) fetcher(cfg Config, client *egress.Client, memory, disk *fair.Line) fetcher {
	return gitFetcher{config: a, client: client, tempDir: cfg.Limits.TempDir, memory: memory, disk: disk,
		limits: packLimits{bytes: client.Limits().MaxBytes, objectBytes: cfg.Limits.MaxGitObjectBytes}}
}

func (s gitFetcher) account() Account {
	return Account{s.config.Name, []string{gitType}, gitType}
}
func (gitFetcher) handles(artifactType string) bool { return artifactType == gitType }

// fetch returns what "git archive --format tgz VERSION [SUBPATH]" writes. The repository is cloned
// into a temporary directory, as little of it as the version needs.
func (s gitFetcher) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
	version, subPath := versionOf(r.Artifact, defaultVersion), gitSubPath(r)
	if !validGitText.MatchString(version) || subPath != "" && !validGitText.MatchString(subPath) {
		return nil, vedette.Errorf(vedette.Invalid,
			"versions and paths of Git may contain letters, digits, hyphens, underscores, slashes and dots only, got %.100q and %.100q", version, subPath)
	}
	endpoint, err := s.endpoint(r.Artifact.Reference)
	if err != nil {
		return nil, err
	}
	dir, err := tempdir.Make(s.tempDir, clonePattern)
	if err != nil {
		return nil, fmt.Errorf("make a directory for the clone: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.client.Limits().Timeout)
	clone := newGitClone(dir, s.limits, cloneBudget{s.memory, s.disk, max(diskBytes, 3*s.limits.bytes), r.Caller})
	var archive io.ReadCloser
	err = recovered(func() (err error) {
		archive, err = s.archive(ctx, endpoint, clone, version, subPath)
		return err
	})
	if err != nil {
		cancel()
		return nil, errors.Join(err, clone.remove())
	}
	return &clonedArchive{ReadCloser: archive, cancel: cancel, clone: clone}, nil
}

func (s gitFetcher) archive(ctx context.Context, endpoint *transport.Endpoint, clone *gitClone, version, subPath string) (io.ReadCloser,
	error) {
	refs := &refList{memory: s.memory, caller: clone.budget.caller}
	defer refs.release()
	session, err := s.connect(ctx, endpoint, refs)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	commit, err := clone.fetch(ctx, session, version, func() (gitSession, error) { return s.connect(ctx, endpoint, refs) })
	if refs.err != nil {
		err = fmt.Errorf("list branches and tags: %w", refs.err)
	}
	if err != nil {
		return nil, s.hideLogin(gitError(endpoint, err))
	}
	return clone.archiveCommit(ctx, commit, subPath, s.limits.bytes*expansion)
}

// clonedArchive removes the clone when the archive was read.
type clonedArchive struct {
	io.ReadCloser
	cancel context.CancelFunc
	clone  *gitClone
}

// Close ends the archive and removes the clone.
func (a *clonedArchive) Close() error {
	a.cancel() // an archiver that is between two entries sees no closed reader
	return errors.Join(a.ReadCloser.Close(), a.clone.remove())
}

// validGitText are versions and paths that Clouddriver accepts, too.
var validGitText = regexp.MustCompile(`^[a-zA-Z0-9/_.-]+$`)

func gitSubPath(r Request) string {
	path, _ := r.Artifact.Metadata["subPath"].(string)
	if r.Artifact.Location != nil && *r.Artifact.Location != "" {
		path = *r.Artifact.Location
	}
	return path
}

// endpoint returns where the repository is.
func (s gitFetcher) endpoint(reference string) (*transport.Endpoint, error) {
	endpoint, err := transport.NewEndpoint(reference)
	isHTTP := err == nil && (endpoint.Protocol == "http" || endpoint.Protocol == "https")
	isSSH := err == nil && endpoint.Protocol == "ssh"
	switch {
	case !isHTTP && !isSSH || endpoint.Host == "":
		return nil, vedette.Errorf(vedette.Invalid, "the reference must be the URL of a Git repository: http://, https://, ssh:// or git@")
	case !s.config.login().isEmpty() && !isHTTP:
		return nil, vedette.Errorf(vedette.Invalid, "the account has a password or a token, so that the reference must start with http:// or https://")
	case s.config.login().isEmpty() && s.config.SSHKeyPath != "" && !isSSH:
		return nil, vedette.Errorf(vedette.Invalid, "the account has an SSH key, so that the reference must start with ssh:// or git@")
	case !s.allowsHost(endpoint.Host):
		return nil, vedette.Errorf(vedette.Invalid, "Repository host '%.300s' is not in the allowed hosts list of the account", endpoint.Host)
	}
	return endpoint, nil
}

func (s gitFetcher) allowsHost(host string) bool {
	host = strings.ToLower(host)
	for _, allowed := range s.config.AllowedHosts {
		allowed = strings.ToLower(allowed)
		if host == allowed || strings.HasSuffix(host, "."+allowed) {
			return true
		}
	}
	return len(s.config.AllowedHosts) == 0
}
