// Package vault reads secrets of HashiCorp Vault's KV engine, of version 1 and 2:
//
//	encrypted:vault!e:ENGINE!p:PATH!k:KEY!b:true
//
// ENGINE is where the KV engine is mounted; b says that the value is base64. n is an older name of p.
package vault

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret"
)

// The methods to log in, as in Config.Method. Case does not matter.
const (
	Kubernetes = "KUBERNETES"
	Token      = "TOKEN"
	UserPass   = "USERPASS"
	AppRole    = "APPROLE"
)

// Config is a server of HashiCorp Vault and how to log in there, with the keys of Spinnaker and of the Scale Agent. Environment
// variables of Vault's own programs count too: VAULT_CACERT, VAULT_CLIENT_CERT, VAULT_SKIP_VERIFY and others.
type Config struct {
	// Resolve references to vault. If false, each of them is an error.
	Enabled bool `config:"enabled" default:"false"`
	// URL of the server. Environment variables of Vault's own programs count too, for example VAULT_CACERT.
	URL string `config:"url" env:"VAULT_ADDR"`
	// How to log in: KUBERNETES, TOKEN, USERPASS or APPROLE, ignoring case.
	Method string `config:"authMethod"`
	// Where the method is mounted. Default: kubernetes, userpass or approle.
	Path string `config:"path"`
	// Namespace of Vault Enterprise.
	Namespace string `config:"namespace" env:"VAULT_NAMESPACE"`
	// Role of the pod's service account, for KUBERNETES.
	Role string `config:"role"`
	// Token, for TOKEN. It is renewed as long as it may be.
	Token configfile.Secret `config:"token" env:"VAULT_TOKEN"`
	// User, for USERPASS.
	Username string `config:"username"`
	// Password, for USERPASS.
	Password configfile.Secret `config:"password"`
	// Where USERPASS is mounted, if path is not set.
	UserAuthPath string `config:"userAuthPath"`
	// Role ID, for APPROLE.
	RoleID string `config:"roleId"`
	// Secret ID, for APPROLE.
	SecretID configfile.Secret `config:"secretId"`
	// PEM file with the authorities of the server. Default: those of VAULT_CACERT or of the system.
	CAFile string `config:"cacertFile"`

	JWTFile string // the token of the pod's service account, for KUBERNETES
}

// Check reports what is wrong with the settings.
func (c Config) Check(to configfile.Checker) {
	if !c.Enabled {
		return
	}
	if u, err := url.Parse(c.URL); c.URL == "" {
		to.Problem("enabled", " is true, but %q is missing", to.Path("url"))
	} else if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		to.Problem("url", " must be a URL, for example https://vault.example.com:8200, got %q", c.URL)
	}
	required, known := c.required()
	if c.Method == "" {
		to.Problem("enabled", " is true, but %q is missing: set it to KUBERNETES, TOKEN, USERPASS or APPROLE", to.Path("authMethod"))
	} else if !known {
		to.Problem("authMethod", " must be one of KUBERNETES, TOKEN, USERPASS, APPROLE, got %q", c.Method)
	}
	for _, r := range required {
		if r.value == "" {
			to.Missing("authMethod", r.key, strings.ToUpper(c.Method)+" needs it")
		}
	}
}

// IsValid reports whether Check has nothing to report.
func (c Config) IsValid() bool {
	var r configfile.Report
	c.Check(r.Checker())
	return len(r.Problems) == 0
}

type requiredKey struct{ key, value string }

// required returns the keys that the method needs; false if there is no such method.
func (c Config) required() ([]requiredKey, bool) {
	switch strings.ToUpper(c.Method) {
	case Kubernetes:
		return []requiredKey{{"role", c.Role}}, true
	case Token:
		return []requiredKey{{"token", c.Token.Reveal()}}, true
	case UserPass:
		return []requiredKey{{"username", c.Username}, {"password", c.Password.Reveal()}}, true
	case AppRole:
		return []requiredKey{{"roleId", c.RoleID}, {"secretId", c.SecretID.Reveal()}}, true
	}
	return nil, false
}

// Engine reads secrets of one server. It logs in when it reads the first one.
type Engine struct {
	cfg Config

	mu      sync.Mutex // held while logging in, so that concurrent fetches share a session
	current *session
	styles  map[string]style // of engines that were read, by their path
}

// New returns an engine. It does no I/O.
func New(cfg Config) *Engine { return &Engine{cfg: cfg, styles: map[string]style{}} }

// Close ends the renewal of the token.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current.end()
	e.current = nil
	return nil
}

// Locate implements secret.Engine.
func (e *Engine) Locate(r secret.Reference) (secret.Location, error) {
	params, err := r.Params([]string{"e", "k"}, []string{"p", "n", "b"})
	if err != nil {
		return secret.Location{}, err
	}
	mount, path := strings.Trim(params["e"], "/"), strings.Trim(cmp.Or(params["p"], params["n"]), "/")
	if path == "" || params["p"] != "" && params["n"] != "" {
		return secret.Location{}, vedette.Errorf(vedette.Invalid, "%s must have a path, once: p:PATH (n is an older name of p)", r)
	}
	isBase64 := false
	if text := params["b"]; text != "" {
		if isBase64, err = strconv.ParseBool(text); err != nil {
			return secret.Location{}, vedette.Errorf(vedette.Invalid, "%s has another value of b than true and false", r)
		}
	}
	return secret.Location{
		Document: mount + "!" + path,
		Fetch:    func(ctx context.Context) ([]byte, error) { return e.fetch(ctx, mount, path) },
		Select: func(document []byte) (string, error) {
			text, err := secret.JSONKey(document, params["k"])
			if err != nil || !isBase64 {
				return text, err
			}
			return secret.DecodeBase64(text)
		},
	}, nil
}

// fetch reads a secret. If Vault denies that because the token was revoked or has expired, it logs in
// again, once.
func (e *Engine) fetch(ctx context.Context, mount, path string) ([]byte, error) {
	s, err := e.session(ctx, nil)
	if err != nil {
		return nil, err
	}
	document, err := e.read(ctx, s, mount, path)
	if vedette.KindOf(err) != vedette.Denied || s.isValid(ctx) {
		return document, err
	}
	if s, err = e.session(ctx, s); err != nil {
		return nil, err
	}
	return e.read(ctx, s, mount, path)
}
