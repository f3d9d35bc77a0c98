package artifacts

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/vedette-io/vedette"
)

// gitSession asks a server for objects once.
type gitSession interface {
	AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error)
	UploadPack(ctx context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	Close() error
}

// connect opens a session for one fetch.
func (s gitFetcher) connect(ctx context.Context, endpoint *transport.Endpoint, refs *refList) (gitSession, error) {
	if endpoint.Protocol == "ssh" {
		return s.connectSSH(ctx, endpoint, refs)
	}
	auth, err := s.httpAuth()
	if err != nil {
		return nil, err
	}
	client := githttp.NewClient(&http.Client{Transport: refTransport{s.client, refs}, CheckRedirect: s.checkRedirect})
	session, err := client.NewUploadPackSession(endpoint, auth)
	if err != nil {
		return nil, gitError(endpoint, err)
	}
	return session, nil
}

// httpAuth returns the login, nil if there is none. With a token and no user, the user is
// "token", as Clouddriver has it.
func (s gitFetcher) httpAuth() (transport.AuthMethod, error) {
	login := s.config.login()
	secret := login.token
	if login.usernamePassword != nil {
		text, err := login.usernamePassword()
		user, password, _ := strings.Cut(text, ":")
		return &githttp.BasicAuth{Username: user, Password: password}, err
	}
	if login.username != "" && login.password != nil {
		secret = login.password
	}
	if secret == nil {
		return nil, nil //nolint:nilnil // no login is a valid one
	}
	text, err := secret()
	return &githttp.BasicAuth{Username: cmp.Or(login.username, "token"), Password: text}, err
}

// checkRedirect rejects redirects to hosts that references may not name either. go-git removes
// credentials for other hosts.
func (s gitFetcher) checkRedirect(next *http.Request, _ []*http.Request) error {
	if !s.allowsHost(next.URL.Hostname()) {
		return vedette.Errorf(vedette.Invalid, "redirect to host '%.300s', which is not in the allowed hosts list of the account", next.URL.Hostname())
	}
	return nil
}
