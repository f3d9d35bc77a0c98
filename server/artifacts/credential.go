package artifacts

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Credential returns a secret when it is needed, so that a rotated file counts without a restart.
// It is a function because fmt cannot print what a function returns. Nil means that there is none.
type Credential func() (string, error)

// text is a credential from the configuration; nil if it is empty.
func text(secret configfile.Secret) Credential {
	if secret.Reveal() == "" {
		return nil
	}
	return func() (string, error) { return secret.Reveal(), nil }
}

// maxCredentialBytes bounds the size of a file with a credential.
const maxCredentialBytes = 64 << 10

// file is a credential from a file, without line breaks; nil if the path is empty. Like in
// Spring, the path may start with "file:".
func file(path string) Credential {
	path = strings.TrimPrefix(path, "file:")
	if path == "" {
		return nil
	}
	return func() (string, error) {
		content, err := readFile(path)
		return withoutLineBreaks(content), err
	}
}

// commandTimeout is the time that a program has to print a credential.
const commandTimeout = 10 * time.Second

// command is a credential that a program prints, without line breaks; nil if the path is empty.
func command(path string) Credential {
	if path == "" {
		return nil
	}
	return func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
		defer cancel()
		out, err := exec.CommandContext(ctx, path).Output() //nolint:gosec // the operator names the program
		if err != nil {
			return "", fmt.Errorf("run the program %s of the account: %w", path, err)
		}
		return withoutLineBreaks(out), nil
	}
}

func withoutLineBreaks(text []byte) string {
	return strings.NewReplacer("\n", "", "\r", "").Replace(string(text))
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxCredentialBytes {
		return nil, fmt.Errorf("the file %s of the account is larger than %d KiB", path, maxCredentialBytes>>10)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		// The text of an os.PathError names the path twice with this one.
		if pathError, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathError.Err
		}
		return nil, fmt.Errorf("read the file %s of the account: %w", path, err)
	}
	return content, nil
}

// BasicLogin has the keys of accounts with a user and a password.
type BasicLogin struct {
	// User, with password.
	Username string `config:"username"`
	// Password of the user.
	Password configfile.Secret `config:"password"`
	// File with user:password.
	UsernamePasswordFile string `config:"usernamePasswordFile"`
}

// TokenLogin has the keys of accounts that may have a token besides a password.
type TokenLogin struct {
	// Access token. It is used instead of a password.
	Token configfile.Secret `config:"token"`
	// File with an access token. It is used instead of token.
	TokenFile string `config:"tokenFile"`
}

// credential returns the token; nil if there is none.
func (t TokenLogin) credential() Credential {
	if t.TokenFile != "" {
		return file(t.TokenFile)
	}
	return text(t.Token)
}

// login is how an account authenticates with a service. A token is used if there is one.
type login struct {
	username string
	password Credential
	// usernamePassword gives "user:password". It is used instead of username and password.
	usernamePassword Credential
	token            Credential
}

func newLogin(b BasicLogin, t TokenLogin) login {
	return login{username: b.Username, password: text(b.Password), usernamePassword: file(b.UsernamePasswordFile), token: t.credential()}
}

// isEmpty reports whether the account has no credentials.
func (l login) isEmpty() bool {
	return l.username == "" && !l.hasSecret()
}

// hasSecret reports whether the account has anything but the name of a user.
func (l login) hasSecret() bool {
	return l.password != nil || l.usernamePassword != nil || l.token != nil
}

// basic returns the value of an Authorization header; "" if there are no credentials.
func (l login) basic() (string, error) {
	credentials := ""
	switch {
	case l.usernamePassword != nil:
		value, err := l.usernamePassword()
		if err != nil {
			return "", err
		}
		credentials = value
	case l.username != "" && l.password != nil:
		password, err := l.password()
		if err != nil {
			return "", err
		}
		credentials = l.username + ":" + password
	default:
		return "", nil
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials)), nil
}

// header returns the headers of a request. Token is the form in which the service wants a token:
// the name of a header and what precedes the token in it.
func (l login) header(tokenName, tokenPrefix string) (http.Header, error) {
	header := http.Header{}
	if l.token != nil {
		token, err := l.token()
		if err != nil {
			return nil, err
		}
		header.Set(tokenName, tokenPrefix+token)
		return header, nil
	}
	basic, err := l.basic()
	if basic != "" {
		header.Set("Authorization", basic)
	}
	return header, err
}
