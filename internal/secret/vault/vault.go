// Package vault reads secrets of HashiCorp Vault's KV engine, of version 1 and 2:
//
//	encrypted:vault!e:ENGINE!p:PATH!k:KEY!b:true
//
// ENGINE is where the KV engine is mounted; b says that the value is base64. n is an older name of p.
package vault

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/secret"
)

// The methods to log in, as in Config.Method. Case does not matter.
const (
	Kubernetes = "KUBERNETES"
	Token      = "TOKEN"
	UserPass   = "USERPASS"
	AppRole    = "APPROLE"
)

// Config is a server and how to log in there. Environment variables of Vault's own programs count too:
// VAULT_CACERT, VAULT_CLIENT_CERT, VAULT_SKIP_VERIFY and others.
type Config struct {
	URL       string
	Namespace string // of Vault Enterprise; empty for none
	Method    string
	// Path is where the method is mounted: kubernetes, userpass or approle if it is empty.
	Path string

	Role    string // for Kubernetes
	JWTFile string // for Kubernetes: the token of the pod's service account
	Token   string // for Token

	Username, Password string // for UserPass
	RoleID, SecretID   string // for AppRole

	CAFile string // authorities of the server; empty for those of the environment or the system
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

// Source implements secret.Engine.
func (e *Engine) Source(r secret.Reference) (secret.Source, error) {
	params, err := r.Params([]string{"e", "k"}, []string{"p", "n", "b"})
	if err != nil {
		return secret.Source{}, err
	}
	mount, path := strings.Trim(params["e"], "/"), strings.Trim(cmp.Or(params["p"], params["n"]), "/")
	if path == "" || params["p"] != "" && params["n"] != "" {
		return secret.Source{}, vedette.Errorf(vedette.Invalid, "%s must have a path, once: p:PATH (n is an older name of p)", r)
	}
	isBase64 := false
	if text := params["b"]; text != "" {
		if isBase64, err = strconv.ParseBool(text); err != nil {
			return secret.Source{}, vedette.Errorf(vedette.Invalid, "%s has another value of b than true and false", r)
		}
	}
	return secret.Source{
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
