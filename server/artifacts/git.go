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
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/internal/tempdir"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// GitAccount fetches archives of Git repositories, over HTTP with a password or a token, or over
// SSH with a key.
type GitAccount struct {
	Name string
	// Login has the user and the password or the token for HTTP.
	Login Login
	// SSHKeyPath is a file with a private key. Credentials for HTTP are used instead if there are any.
	SSHKeyPath       string
	SSHKeyPassphrase Credential
	// KnownHostsPath is a file with keys of hosts. Empty means ~/.ssh/known_hosts and
	// /etc/ssh/ssh_known_hosts.
	KnownHostsPath    string
	TrustUnknownHosts bool
	// AllowedHosts are hosts that references may name, with their subdomains. None means all.
	AllowedHosts []string
}

// gitSource clones repositories and archives them.
type gitSource struct {
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
func (c Config) RemoveAbandonedClones() int { return tempdir.RemoveAbandoned(c.TempDir, clonePattern) }

func (a GitAccount) source(cfg Config, client *egress.Client, memory, disk *fair.Line) source {
	return gitSource{config: a, client: client, tempDir: cfg.TempDir, memory: memory, disk: disk,
		limits: packLimits{bytes: client.Limits().MaxBytes, objectBytes: cfg.MaxGitObjectBytes}}
}

func (s gitSource) account() Account {
	return Account{s.config.Name, []string{gitType}, gitType}
}
func (gitSource) handles(artifactType string) bool { return artifactType == gitType }

// fetch returns what "git archive --format tgz VERSION [SUBPATH]" writes. The repository is cloned
// into a temporary folder, as little of it as the version needs.
func (s gitSource) fetch(ctx context.Context, r Request) (io.ReadCloser, error) {
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
		return nil, fmt.Errorf("make a folder for the clone: %w", err)
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

func (s gitSource) archive(ctx context.Context, endpoint *transport.Endpoint, clone *gitClone, version, subPath string) (io.ReadCloser,
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
func (s gitSource) endpoint(reference string) (*transport.Endpoint, error) {
	endpoint, err := transport.NewEndpoint(reference)
	isHTTP := err == nil && (endpoint.Protocol == "http" || endpoint.Protocol == "https")
	isSSH := err == nil && endpoint.Protocol == "ssh"
	switch {
	case !isHTTP && !isSSH || endpoint.Host == "":
		return nil, vedette.Errorf(vedette.Invalid, "the reference must be the URL of a Git repository: http://, https://, ssh:// or git@")
	case !s.config.Login.IsEmpty() && !isHTTP:
		return nil, vedette.Errorf(vedette.Invalid, "the account has a password or a token, so that the reference must start with http:// or https://")
	case s.config.Login.IsEmpty() && s.config.SSHKeyPath != "" && !isSSH:
		return nil, vedette.Errorf(vedette.Invalid, "the account has an SSH key, so that the reference must start with ssh:// or git@")
	case !s.allowsHost(endpoint.Host):
		return nil, vedette.Errorf(vedette.Invalid, "Repository host '%.300s' is not in the allowed hosts list of the account", endpoint.Host)
	}
	return endpoint, nil
}

func (s gitSource) allowsHost(host string) bool {
	host = strings.ToLower(host)
	for _, allowed := range s.config.AllowedHosts {
		allowed = strings.ToLower(allowed)
		if host == allowed || strings.HasSuffix(host, "."+allowed) {
			return true
		}
	}
	return len(s.config.AllowedHosts) == 0
}
