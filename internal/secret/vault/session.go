package vault

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/vault/api"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/keypair"
	"github.com/vedette-io/vedette/internal/mask"
	"github.com/vedette-io/vedette/internal/notfound"
	"github.com/vedette-io/vedette/internal/secret"
)

// session is a login. Its token is renewed until the session ends.
type session struct {
	client  *api.Client
	watcher *api.LifetimeWatcher // nil if the token does not expire
	expired chan struct{}        // closed when the token can be renewed no longer
}

// end ends the renewal and waits for it. A nil session has none.
func (s *session) end() {
	if s == nil || s.watcher == nil {
		return
	}
	s.watcher.Stop()
	<-s.expired
}

func (s *session) isExpired() bool {
	select {
	case <-s.expired:
		return true
	default:
		return false
	}
}

// isValid reports whether Vault still knows the token.
func (s *session) isValid(ctx context.Context) bool {
	_, err := s.client.Auth().Token().LookupSelfWithContext(ctx)
	return err == nil
}

// session returns the current session. It logs in if there is none, or if the current one has expired
// or is the one that was rejected.
func (e *Engine) session(ctx context.Context, rejected *session) (*session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current != nil && e.current != rejected && !e.current.isExpired() {
		return e.current, nil
	}
	e.current.end()
	e.current = nil
	s, err := e.login(ctx)
	if err != nil {
		return nil, err
	}
	e.current = s
	return s, nil
}

// callTimeout limits the calls that renew a token.
const callTimeout = 10 * time.Second

func (e *Engine) newClient() (*api.Client, error) {
	cfg := api.DefaultConfig()
	if cfg.Error != nil {
		return nil, vedette.Errorf(vedette.Invalid, "use the environment variables of Vault: %w", cfg.Error)
	}
	cfg.Address = e.cfg.URL
	cfg.MaxRetries = 0
	cfg.Timeout = callTimeout // whoever fetches retries
	if e.cfg.CAFile != "" {
		if _, err := keypair.LoadCertPool(e.cfg.CAFile); err != nil { // the library would accept a part of the file
			return nil, vedette.Errorf(vedette.Invalid, "read the certificate authorities of Vault: %w", err)
		}
		if err := cfg.ConfigureTLS(&api.TLSConfig{CACert: e.cfg.CAFile}); err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "read the certificate authorities of Vault: %w", err)
		}
	}
	client, err := api.NewClient(cfg)
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "use %s as URL of Vault: %w", e.cfg.URL, err)
	}
	cfg.HttpClient.Transport = secret.LimitBodies(cfg.HttpClient.Transport) // not before: the library wants to see its own
	client.ClearToken()                                                     // of VAULT_TOKEN, which counts for one of the methods only
	if e.cfg.Namespace != "" {
		client.SetNamespace(e.cfg.Namespace)
	}
	return client, nil
}

// login gets a token, and keeps it valid.
func (e *Engine) login(ctx context.Context) (*session, error) {
	client, err := e.newClient()
	if err != nil {
		return nil, err
	}
	auth, err := e.authenticate(ctx, client)
	if err != nil {
		return nil, err
	}
	s := &session{client: client, expired: make(chan struct{})}
	if auth == nil || auth.LeaseDuration == 0 {
		return s, nil
	}
	s.watcher, err = client.NewLifetimeWatcher(&api.LifetimeWatcherInput{Secret: &api.Secret{Auth: auth}})
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "renew the token of Vault: %w", err)
	}
	go s.watcher.Start()
	go func() {
		defer close(s.expired)
		<-s.watcher.DoneCh() //nolint:errcheck // whatever the reason, the next fetch logs in again
	}()
	return s, nil
}

// authenticate gives the client a token. It returns what is known of the token; nil for a token that
// must not renew itself.
func (e *Engine) authenticate(ctx context.Context, client *api.Client) (*api.SecretAuth, error) {
	if strings.EqualFold(e.cfg.Method, Token) {
		return e.useToken(ctx, client)
	}
	path, body, err := e.loginRequest()
	if err != nil {
		return nil, err
	}
	answer, err := client.Logical().WriteWithContext(ctx, path, body)
	if err != nil {
		err = e.explain(ctx, client, err)
		return nil, vedette.Errorf(vedette.KindOf(err), "log in at Vault by %s: %w", path, err)
	}
	if answer == nil || answer.Auth == nil {
		return nil, vedette.Errorf(vedette.Invalid, "log in at Vault by %s: the answer has no token", path)
	}
	client.SetToken(answer.Auth.ClientToken)
	return answer.Auth, nil
}

// useToken uses the token of the configuration. Renewing it tells how long it is valid; a token that
// cannot be renewed is used until Vault rejects it.
func (e *Engine) useToken(ctx context.Context, client *api.Client) (*api.SecretAuth, error) {
	client.SetToken(e.cfg.Token.Reveal())
	answer, err := client.Auth().Token().RenewSelfWithContext(ctx, 0)
	switch err = e.explain(ctx, client, err); {
	case vedette.KindOf(err) == vedette.Unavailable:
		return nil, err
	case err != nil || answer == nil || answer.Auth == nil:
		return nil, nil //nolint:nilnil // nothing is known of the token, and it may be valid
	}
	return answer.Auth, nil
}

// loginRequest returns the path and the body of a login.
func (e *Engine) loginRequest() (string, map[string]any, error) {
	mount := strings.Trim(e.cfg.Path, "/")
	switch strings.ToUpper(e.cfg.Method) {
	case Kubernetes:
		// The token is read each time, because Kubernetes replaces it.
		jwt, err := os.ReadFile(e.cfg.JWTFile)
		if err != nil {
			return "", nil, vedette.Errorf(vedette.Invalid, "log in at Vault as the pod's service account: %w", err)
		}
		return "auth/" + cmp.Or(mount, "kubernetes") + "/login",
			map[string]any{"role": e.cfg.Role, "jwt": strings.TrimSpace(string(jwt))}, nil
	case UserPass:
		mount = cmp.Or(mount, strings.Trim(e.cfg.UserAuthPath, "/"), "userpass")
		return "auth/" + mount + "/login/" + e.cfg.Username, map[string]any{"password": e.cfg.Password.Reveal()}, nil
	case AppRole:
		return "auth/" + cmp.Or(mount, "approle") + "/login", map[string]any{"role_id": e.cfg.RoleID, "secret_id": e.cfg.SecretID.Reveal()}, nil
	}
	return "", nil, vedette.Errorf(vedette.Invalid, "%q is not a method to log in at Vault", e.cfg.Method)
}

// maxShown limits what is shown of Vault's answer, in bytes. Proxies answer with whole pages.
const maxShown = 300

// explain gives an error of Vault's client a kind. The client's own text has several lines, with the
// URL. What the server quotes of a request is masked: whoever answers may not be Vault.
func (e *Engine) explain(ctx context.Context, client *api.Client, err error) error {
	if err == nil {
		return nil
	}
	host := strings.TrimPrefix(strings.TrimPrefix(client.Address(), "http://"), "https://")
	var response *api.ResponseError
	if !errors.As(err, &response) {
		return secret.Unreachable(ctx, host, err)
	}
	// Vault writes lists of errors in several lines, even of one.
	text := mask.TextValues(e.credentials(client)).Mask(strings.Join(response.Errors, "; "))
	text = strings.TrimPrefix(strings.Join(strings.Fields(text), " "), "1 error occurred: * ")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	if text == "" {
		text = http.StatusText(response.StatusCode)
	}
	if response.StatusCode == http.StatusNotFound && (response.RawError || response.Errors == nil) {
		return vedette.Errorf(vedette.Unavailable, "Vault at %s answered with status 404, %s: %s", host, notfound.Hint, text)
	}
	return vedette.Errorf(secret.KindOfStatus(response.StatusCode), "Vault at %s answered with status %d: %s", host, response.StatusCode, text)
}

// credentials returns what requests show to Vault.
func (e *Engine) credentials(client *api.Client) []string {
	all := []string{client.Token(), e.cfg.Token.Reveal(), e.cfg.Password.Reveal(), e.cfg.SecretID.Reveal()}
	if jwt, err := os.ReadFile(e.cfg.JWTFile); err == nil {
		all = append(all, strings.TrimSpace(string(jwt)))
	}
	return all
}
