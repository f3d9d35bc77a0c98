package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"
	"k8s.io/client-go/rest"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// googleScope is what clusters of Google require if no scopes are configured.
const googleScope = "https://www.googleapis.com/auth/cloud-platform"

// googleTokens gets access tokens of Google for a cluster: those of a service account whose key
// is in a file, or those of the environment (Application Default Credentials).
type googleTokens struct {
	keyFile string // empty for the environment
	scopes  []string
}

// googleTokens returns what gets tokens for cfg, or nil if cfg does not need any. oAuthScopes
// alone is for kubeconfigs without credentials, or with the provider gcp, which client-go no longer has.
func (a Access) googleTokens(cfg *rest.Config) *googleTokens {
	if a.OAuthServiceAccount == "" && (len(a.OAuthScopes) == 0 || hasCredentials(cfg)) {
		return nil
	}
	cfg.AuthProvider = nil
	g := &googleTokens{keyFile: a.OAuthServiceAccount, scopes: a.OAuthScopes}
	if len(g.scopes) == 0 {
		g.scopes = []string{googleScope}
	}
	return g
}

// hasCredentials reports whether cfg has other credentials than those that Google issues.
func hasCredentials(cfg *rest.Config) bool {
	t := cfg.TLSClientConfig
	return cfg.BearerToken != "" || cfg.BearerTokenFile != "" || cfg.Username != "" || len(t.CertData) > 0 || t.CertFile != "" ||
		cfg.ExecProvider != nil || cfg.AuthProvider != nil && cfg.AuthProvider.Name != "gcp"
}

// removeCredentials removes what identifies the user, because oAuthServiceAccount replaces it, as in
// Clouddriver, which passes a token to kubectl.
func removeCredentials(cfg *rest.Config) {
	cfg.BearerToken, cfg.BearerTokenFile, cfg.Username, cfg.Password = "", "", "", ""
	cfg.ExecProvider, cfg.AuthProvider = nil, nil
	t := &cfg.TLSClientConfig
	t.CertData, t.CertFile, t.KeyData, t.KeyFile = nil, "", nil, ""
}

// check reads the key, so that a file that cannot be used is reported at once.
func (g *googleTokens) check() error {
	if g.keyFile == "" {
		return nil // the environment may get credentials later
	}
	_, err := g.readKey()
	return err
}

// run gets a token. The key is read each time, because it may have been replaced.
func (g *googleTokens) run(ctx context.Context) (*execCredentials, error) {
	source, err := g.source(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: contextTransport{ctx}}))
	if err != nil {
		return nil, err
	}
	token, err := source.Token()
	if err != nil {
		return nil, g.explain(err)
	}
	if token.AccessToken == "" {
		return nil, errors.New("the answer of Google has no access token")
	}
	return &execCredentials{token: token.AccessToken, expires: token.Expiry}, nil
}

func (g *googleTokens) source(ctx context.Context) (oauth2.TokenSource, error) {
	if g.keyFile != "" {
		key, err := g.readKey()
		if err != nil {
			return nil, err
		}
		return key.TokenSource(ctx), nil
	}
	found, err := google.FindDefaultCredentials(ctx, g.scopes...)
	if err != nil {
		return nil, fmt.Errorf("find Google's credentials of this machine for oAuthScopes: %w: set oAuthServiceAccount elsewhere", err)
	}
	return found.TokenSource, nil
}

// readKey reads the key of a service account. Errors do not quote the file.
func (g *googleTokens) readKey() (*jwt.Config, error) {
	if err := checkFile(g.keyFile); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read oAuthServiceAccount: %w", err)
	}
	key, err := os.ReadFile(g.keyFile)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read oAuthServiceAccount: %w", err)
	}
	config, err := google.JWTConfigFromJSON(key, g.scopes...)
	if err != nil || config.Email == "" || len(config.PrivateKey) == 0 {
		return nil, vedette.Errorf(vedette.Invalid,
			"read oAuthServiceAccount: %s is not the key of a service account in JSON, as Google's console and gcloud create it", g.keyFile)
	}
	return config, nil
}

// explain shortens the error of a token endpoint.
func (g *googleTokens) explain(err error) error {
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) && answer.Response != nil {
		return fmt.Errorf("%s returned %s for the service account: %s", answer.Response.Request.URL.Host, answer.Response.Status,
			reasonOf(answer.Body))
	}
	return fmt.Errorf("get an access token of Google: %w", err)
}

// reasonOf returns the reason in the answer of a token endpoint. It shows nothing of other answers,
// because those of proxies may quote the request, which has credentials.
func reasonOf(body []byte) string {
	var answer struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if err := exactjson.Unmarshal(body, &answer, exactjson.Limits{}); err != nil || answer.Error == "" {
		return "the answer is not that of Google"
	}
	return fmt.Sprintf("%.120q %.120q", answer.Error, answer.Description)
}

// contextTransport ends requests with ctx, because package jwt sends them without a context.
type contextTransport struct{ ctx context.Context }

// RoundTrip sends one request.
func (t contextTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return http.DefaultTransport.RoundTrip(r.WithContext(t.ctx))
}
