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
)

// Credential returns a secret when it is needed, so that a rotated file counts without a restart.
// It is a function because fmt cannot print what a function returns. Nil means that there is none.
type Credential func() (string, error)

// Text is a credential from the configuration; nil if the text is empty.
func Text(text string) Credential {
	if text == "" {
		return nil
	}
	return func() (string, error) { return text, nil }
}

// maxCredentialBytes bounds the size of a file with a credential.
const maxCredentialBytes = 64 << 10

// File is a credential from a file, without line breaks; nil if the path is empty. Like in
// Spring, the path may start with "file:".
func File(path string) Credential {
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

// Command is a credential that a program prints, without line breaks; nil if the path is empty.
func Command(path string) Credential {
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
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		return nil, fmt.Errorf("read the file %s of the account: %w", path, err)
	}
	return content, nil
}

// Login is how an account authenticates with a service. A token is used if there is one.
type Login struct {
	Username string
	Password Credential
	// UsernamePassword gives "user:password". It is used instead of Username and Password.
	UsernamePassword Credential
	Token            Credential
}

// IsEmpty reports whether the account has no credentials.
func (l Login) IsEmpty() bool {
	return l.Username == "" && l.Password == nil && l.UsernamePassword == nil && l.Token == nil
}

// basic returns the value of an Authorization header; "" if there are no credentials.
func (l Login) basic() (string, error) {
	text := ""
	switch {
	case l.UsernamePassword != nil:
		value, err := l.UsernamePassword()
		if err != nil {
			return "", err
		}
		text = value
	case l.Username != "" && l.Password != nil:
		password, err := l.Password()
		if err != nil {
			return "", err
		}
		text = l.Username + ":" + password
	default:
		return "", nil
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)), nil
}

// header returns the headers of a request. Token is the form in which the service wants a token:
// the name of a header and what stands before the token in it.
func (l Login) header(tokenName, tokenPrefix string) (http.Header, error) {
	header := http.Header{}
	if l.Token != nil {
		token, err := l.Token()
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
