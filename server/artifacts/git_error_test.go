package artifacts

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/vedette-io/vedette/internal/configfile"
)

// TestGitErrorsWithoutLogin checks that errors say what failed without what servers quote of the login.
func TestGitErrorsWithoutLogin(t *testing.T) {
	s := gitFetcher{config: GitAccount{Username: "me", Password: configfile.NewSecret("s3cr3t-password")}}
	redirected, err := url.Parse("https://elsewhere/s3cr3t-path?token=s3cr3t-query")
	if err != nil {
		t.Fatal(err)
	}
	answer := &githttp.Err{Response: &http.Response{StatusCode: 502, Request: &http.Request{URL: redirected}}}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("list: %w", plumbing.NewUnexpectedError(errors.New("me:s3cr3t-password is wrong"))), "is wrong"},
		{fmt.Errorf("list: %w: s3cr3t-body", transport.ErrAuthenticationRequired), "clone from git.example: authentication required"},
		{fmt.Errorf("list: %w: s3cr3t-body", transport.ErrAuthorizationFailed), "clone from git.example: authorization failed"},
		{fmt.Errorf("list: %w: s3cr3t-body", transport.ErrRepositoryNotFound), "clone from git.example: repository not found"},
		{fmt.Errorf("list: %w", answer), "clone from git.example: the server answered with status 502"},
		{errors.New("ERR no access with bWU6czNjcjN0LXBhc3N3b3Jk"), "no access with"},
		{&url.Error{Op: "Get", URL: redirected.String(), Err: errors.New("connection refused")}, "clone from git.example: connection refused"},
	} {
		got := s.hideLogin(gitError(&transport.Endpoint{Host: "git.example"}, tt.err)).Error()
		if !strings.Contains(got, tt.want) || strings.Contains(got, "s3cr3t") || strings.Contains(got, "bWU6czNjcjN0") {
			t.Errorf("%v: got %s, want %q without secrets", tt.err, got, tt.want)
		}
	}
}
