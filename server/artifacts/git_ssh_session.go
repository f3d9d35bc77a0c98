package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
)

// sshSession is a run of git-upload-pack on a server. It replaces that of go-git, which waits for
// ever for a server that does not answer, and keeps any number of branches and tags in memory.
type sshSession struct {
	client  *ssh.Client
	session *ssh.Session
	stdin   io.WriteCloser
	stdout  io.Reader
	stderr  *firstBytes
	refs    *refList
}

// connectSSH starts a session. It ends with ctx.
func (s gitFetcher) connectSSH(ctx context.Context, endpoint *transport.Endpoint, refs *refList) (gitSession, error) {
	//nolint:contextcheck // credentials have a timeout of their own
	auth, err := newSSHAuth(s.config, s.client.Limits().ConnectTimeout, endpoint)
	if err != nil {
		return nil, err
	}
	conn, err := s.client.Connect(ctx, auth.host)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", endpoint.Host, err)
	}
	inner, channels, requests, err := ssh.NewClientConn(conn, auth.host, auth.clientConfig())
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect to %s: %w", endpoint.Host, err)
	}
	session, err := startUploadPack(ssh.NewClient(inner, channels, requests), endpoint.Path, refs)
	if err != nil {
		inner.Close()
		return nil, fmt.Errorf("connect to %s: %w", endpoint.Host, err)
	}
	return session, nil
}

func startUploadPack(client *ssh.Client, path string, refs *refList) (*sshSession, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	s := &sshSession{client: client, session: session, stderr: &firstBytes{}, refs: refs}
	session.Stderr = s.stderr
	var inErr, outErr error
	s.stdin, inErr = session.StdinPipe()
	s.stdout, outErr = session.StdoutPipe()
	if err := errors.Join(inErr, outErr, session.Start("git-upload-pack "+shellQuote(path))); err != nil {
		return nil, fmt.Errorf("start git-upload-pack: %w", err)
	}
	return s, nil
}

// shellQuote quotes a text as Git does. Exclamation marks are special in csh.
func shellQuote(text string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(text) + "'"
}

// AdvertisedReferencesContext returns the branches and tags. It is called once.
func (s *sshSession) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	err := refs.Decode(s.refs.limit(s.stdout))
	switch {
	case s.refs.err != nil:
		return nil, s.refs.err
	case errors.Is(err, packp.ErrEmptyAdvRefs) || err == nil && refs.IsEmpty():
		return nil, transport.ErrEmptyRemoteRepository
	case errors.Is(err, packp.ErrEmptyInput):
		return nil, s.exitError()
	case err != nil:
		return nil, fmt.Errorf("read branches and tags: %w", err)
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	return refs, nil
}

// exitError returns why the server sent nothing.
func (s *sshSession) exitError() error {
	err := s.session.Wait() // the connection has a time limit
	if text := s.stderr.text(); text != "" {
		return fmt.Errorf("the server says %q", text)
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the server sent nothing: %w", err)
}

func (s *sshSession) UploadPack(_ context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	err := errors.Join(request.UploadRequest.Encode(s.stdin), request.UploadHaves.Encode(s.stdin, true),
		pktline.NewEncoder(s.stdin).EncodeString("done\n"), s.stdin.Close())
	if err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	response := packp.NewUploadPackResponse(request)
	if err := response.Decode(io.NopCloser(s.stdout)); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return response, nil
}

// Close ends the session and its connection.
func (s *sshSession) Close() error { return s.client.Close() }

// firstBytes keeps the start of what is written to it.
type firstBytes struct {
	mu   sync.Mutex
	kept []byte
}

const maxFirstBytes = 500

// Write implements io.Writer.
func (b *firstBytes) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, p[:min(len(p), maxFirstBytes-len(b.kept))]...)
	return len(p), nil
}

func (b *firstBytes) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(string(b.kept))
}
