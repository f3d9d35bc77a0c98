package artifacts

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/vedette-io/vedette/internal/mask"
)

// gitError hides what may contain a password in an error of HTTP: the URL, which may be that of a redirect, and
// the body of an answer, which go-git quotes.
func gitError(endpoint *transport.Endpoint, err error) error {
	if answer, ok := errors.AsType[*githttp.Err](err); ok {
		return fmt.Errorf("clone from %s: the server answered with status %d", endpoint.Host, answer.StatusCode())
	}
	for _, known := range []error{transport.ErrAuthenticationRequired, transport.ErrAuthorizationFailed, transport.ErrRepositoryNotFound} {
		if errors.Is(err, known) {
			return fmt.Errorf("clone from %s: %w", endpoint.Host, known)
		}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return fmt.Errorf("clone from %s: %w", endpoint.Host, err)
}

// hideLogin masks the account's login in an error, because servers quote in the protocol what they like.
// It returns err itself if it has none.
func (s gitFetcher) hideLogin(err error) error {
	auth, authErr := s.httpAuth()
	login, isBasic := auth.(*githttp.BasicAuth)
	if authErr != nil || !isBasic || login.Password == "" {
		return err
	}
	header := base64.StdEncoding.EncodeToString([]byte(login.Username + ":" + login.Password))
	if hidden := mask.TextValues([]string{login.Password, header}).Mask(err.Error()); hidden != err.Error() {
		return errors.New(hidden)
	}
	return err
}
