// Package engines has the section `secrets` of both programs' configurations, and resolves the
// references in a configuration by the engines that the section describes.
package engines

import (
	"net/url"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/secret/vault"
)

// Settings describe the engines of references to secrets (encrypted:vault!…). Engines that are not here need
// no settings: they use the credentials of the environment, as other programs of AWS, Google and Kubernetes do.
type Settings struct {
	// Server for references to vault.
	Vault Vault `config:"vault"`
}

// Vault is a server of HashiCorp Vault, with the keys of Spinnaker and of the Scale Agent.
type Vault struct {
	// Resolve references to vault. If false, each of them is an error.
	Enabled bool `config:"enabled" default:"false"`
	// URL of the server. Environment variables of Vault's own programs count too, for example VAULT_CACERT.
	URL string `config:"url" env:"VAULT_ADDR"`
	// How to log in: KUBERNETES, TOKEN, USERPASS or APPROLE, ignoring case.
	AuthMethod string `config:"authMethod"`
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
	CACertFile string `config:"cacertFile"`
}

// Check reports what is wrong with the section, at paths from the top of the configuration.
func (s Settings) Check(report func(path, format string, args ...any)) {
	v := s.Vault
	if !v.Enabled {
		return
	}
	const at = "secrets.vault."
	if u, err := url.Parse(v.URL); v.URL == "" {
		report(at+"enabled", "%q is true, but %q is missing", at+"enabled", at+"url")
	} else if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		report(at+"url", "%q must be a URL, for example https://vault.example.com:8200, got %q", at+"url", v.URL)
	}
	required, known := v.required()
	if v.AuthMethod == "" {
		report(at+"enabled", "%q is true, but %q is missing: set it to KUBERNETES, TOKEN, USERPASS or APPROLE", at+"enabled", at+"authMethod")
	} else if !known {
		report(at+"authMethod", "%q must be one of KUBERNETES, TOKEN, USERPASS, APPROLE, got %q", at+"authMethod", v.AuthMethod)
	}
	for _, r := range required {
		if r.value == "" {
			report(at+"authMethod", "%q is missing: %s needs it", at+r.key, strings.ToUpper(v.AuthMethod))
		}
	}
}

// isValid reports whether Check has nothing to report.
func (v Vault) isValid() bool {
	valid := true
	Settings{Vault: v}.Check(func(string, string, ...any) { valid = false })
	return valid
}

type requiredKey struct{ key, value string }

// required returns the keys that the method needs; false if there is no such method.
func (v Vault) required() ([]requiredKey, bool) {
	switch strings.ToUpper(v.AuthMethod) {
	case vault.Kubernetes:
		return []requiredKey{{"role", v.Role}}, true
	case vault.Token:
		return []requiredKey{{"token", v.Token.Reveal()}}, true
	case vault.UserPass:
		return []requiredKey{{"username", v.Username}, {"password", v.Password.Reveal()}}, true
	case vault.AppRole:
		return []requiredKey{{"roleId", v.RoleID}, {"secretId", v.SecretID.Reveal()}}, true
	}
	return nil, false
}

// vaultConfig converts the settings.
func (v Vault) vaultConfig(jwtFile string) vault.Config {
	path := v.Path
	if strings.EqualFold(v.AuthMethod, vault.UserPass) && path == "" {
		path = v.UserAuthPath
	}
	return vault.Config{
		URL: v.URL, Namespace: v.Namespace, Method: v.AuthMethod, Path: path, Role: v.Role, JWTFile: jwtFile, Token: v.Token.Reveal(),
		Username: v.Username, Password: v.Password.Reveal(), RoleID: v.RoleID, SecretID: v.SecretID.Reveal(), CAFile: v.CACertFile,
	}
}
