package artifacts

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
)

// connect opens a session for one fetch.
func (s gitSource) connect(ctx context.Context, endpoint *transport.Endpoint) (transport.UploadPackSession, error) {
	if endpoint.Protocol == "ssh" {
		return s.connectSSH(ctx, endpoint)
	}
	auth, err := s.httpAuth()
	if err != nil {
		return nil, err
	}
	client := githttp.NewClient(&http.Client{Transport: s.client})
	session, err := client.NewUploadPackSession(endpoint, auth)
	if err != nil {
		return nil, gitError(endpoint, err)
	}
	return session, nil
}

// httpAuth returns the login, nil if there is none. With a token and no user, the user is
// "token", as Clouddriver has it.
func (s gitSource) httpAuth() (transport.AuthMethod, error) {
	login, secret := s.config.Login, s.config.Login.Token
	if login.UsernamePassword != nil {
		text, err := login.UsernamePassword()
		user, password, _ := strings.Cut(text, ":")
		return &githttp.BasicAuth{Username: user, Password: password}, err
	}
	if login.Username != "" && login.Password != nil {
		secret = login.Password
	}
	if secret == nil {
		return nil, nil //nolint:nilnil // no login is a valid one
	}
	text, err := secret()
	if login.Username == "" {
		login.Username = "token"
	}
	return &githttp.BasicAuth{Username: login.Username, Password: text}, err
}

func (s gitSource) connectSSH(ctx context.Context, endpoint *transport.Endpoint) (transport.UploadPackSession, error) {
	auth, err := newSSHAuth(s.config, s.client.Limits().ConnectTimeout, endpoint)
	if err != nil {
		return nil, err
	}
	// The connection goes to the address that was checked. The key is that of the name.
	address, err := s.client.Resolve(ctx, endpoint.Host)
	if err != nil {
		return nil, err
	}
	resolved := *endpoint
	resolved.Host = address.String()
	session, err := gitssh.NewClient(nil).NewUploadPackSession(&resolved, auth)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", endpoint.Host, err)
	}
	return session, nil
}
