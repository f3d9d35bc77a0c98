package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// Google says whose access tokens of Google are used for a cluster: those of a service account whose key is in a file, or those of the
// environment (Application Default Credentials), among them GKE's workload identity and workload identity federation.
type Google struct {
	KeyFile string   // empty for the environment
	Scopes  []string // empty for the one that clusters of Google require
	// ReadFile reads the key. It must not wait for ever.
	ReadFile func(name string) ([]byte, error)
}

const (
	gkePage       = "docs/cloud-gke.md"
	platformScope = "https://www.googleapis.com/auth/cloud-platform"
	// earlier is how long before their end tokens are replaced: they must be valid when they arrive.
	earlier = time.Minute
)

// Source returns the source of tokens. It reads the key, so that a file that cannot be used is reported at once. Credentials of the
// environment may appear later.
func (g Google) Source() (*Source, error) {
	if len(g.Scopes) == 0 {
		g.Scopes = []string{platformScope}
	}
	s := &Source{name: "GKE cluster", service: "Google", page: gkePage, issue: g.issue,
		noIdentity: "neither GOOGLE_APPLICATION_CREDENTIALS nor the metadata server gives the agent an identity of Google",
		rejected:   "the cluster belongs to another project, or the identity may not connect to it (container.clusters.connect): see " + gkePage}
	if g.KeyFile == "" {
		return s, nil
	}
	s.name += ", with the service account in " + g.KeyFile
	_, err := g.readKey()
	return s, err
}

func (g Google) issue(ctx context.Context, client *http.Client) (Token, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	var source oauth2.TokenSource
	switch {
	case g.KeyFile != "":
		key, err := g.readKey()
		if err != nil {
			return Token{}, setupErrorf("%s", err)
		}
		source = key.TokenSource(ctx)
	case hasGoogleFile():
		found, err := google.FindDefaultCredentials(ctx, g.Scopes...)
		if err != nil {
			return Token{}, err //nolint:wrapcheck // Source names what it is about
		}
		source = found.TokenSource
	default:
		return g.askMetadataServer(ctx, client)
	}
	token, err := source.Token()
	if err != nil {
		return Token{}, err //nolint:wrapcheck // as above
	}
	return newToken(token.AccessToken, token.Expiry), nil
}

// hasGoogleFile reports whether a file says what the credentials of the environment are.
func hasGoogleFile() bool {
	if os.Getenv("GOOGLE_APPLICATION_CREDENTIALS") != "" {
		return true
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(home, ".config", "gcloud", "application_default_credentials.json"))
	return err == nil
}

// askMetadataServer gets a token of GKE's metadata server, or of that of a machine. The library of Google asks once whether there is
// one, and believes the answer until the program ends; but GKE's is ready some seconds after a pod has started.
func (g Google) askMetadataServer(ctx context.Context, client *http.Client) (Token, error) {
	path := "instance/service-accounts/default/token?" + url.Values{"scopes": {strings.Join(g.Scopes, ",")}}.Encode()
	checked := &http.Client{Transport: flavorTransport{client.Transport}, CheckRedirect: client.CheckRedirect}
	text, err := metadata.NewClient(checked).GetWithContext(ctx, path)
	if err != nil {
		return Token{}, err //nolint:wrapcheck // Source names what it is about
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"` // seconds
	}
	err = exactjson.Unmarshal([]byte(text), &answer, exactjson.Limits{})
	if err != nil || answer.AccessToken == "" || answer.ExpiresIn <= 0 || answer.ExpiresIn > maxLifetime {
		return Token{}, errors.New("the metadata server's answer is not an access token")
	}
	return newToken(answer.AccessToken, time.Now().Add(time.Duration(answer.ExpiresIn)*time.Second)), nil
}

// maxLifetime is more seconds than any access token is valid: a week.
const maxLifetime = 7 * 24 * 3600

// newToken returns a token that is replaced shortly before its end.
func newToken(value string, expires time.Time) Token {
	if !expires.IsZero() {
		expires = expires.Add(-earlier)
	}
	return Token{Value: value, Expires: expires}
}

// readKey reads the key of a service account. Errors do not quote the file.
func (g Google) readKey() (*jwt.Config, error) {
	key, err := g.ReadFile(g.KeyFile)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read oAuthServiceAccount: %w", err)
	}
	config, err := google.JWTConfigFromJSON(key, g.Scopes...)
	if err != nil || config.Email == "" || len(config.PrivateKey) == 0 {
		return nil, vedette.Errorf(vedette.Invalid,
			"read oAuthServiceAccount: %s is not the key of a service account in JSON, as Google's console and gcloud create it", g.KeyFile)
	}
	return config, nil
}

// flavorTransport checks that a metadata server answers, and not who else has its address.
type flavorTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t flavorTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.Header.Get("Metadata-Flavor") != "Google" {
		resp.Body.Close()
		return nil, fmt.Errorf("%s is not Google's metadata server: its answer has no header Metadata-Flavor", r.URL.Host)
	}
	return resp, nil
}
