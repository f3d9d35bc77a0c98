package engines

import (
	"cmp"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/secret"
	"github.com/vedette-io/vedette/internal/secret/gcs"
	"github.com/vedette-io/vedette/internal/secret/kubernetes"
	"github.com/vedette-io/vedette/internal/secret/s3"
	"github.com/vedette-io/vedette/internal/secret/secretsmanager"
	"github.com/vedette-io/vedette/internal/secret/vault"
)

// withoutSettings returns the engines that need no settings. getenv returns "" for a variable that is
// not set.
func withoutSettings(getenv func(string) string) map[string]secret.Engine {
	client := secret.NewHTTPClient(http.DefaultTransport.(*http.Transport).Clone())
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	return map[string]secret.Engine{
		"noop":            secret.Noop{},
		"k8s":             &kubernetes.Engine{Host: host, Port: port, Dir: serviceAccountDir(getenv)},
		"s3":              &s3.Engine{Client: client, Endpoint: cmp.Or(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"))},
		"gcs":             gcs.New(client, emulatorURL(getenv("STORAGE_EMULATOR_HOST"))),
		"secrets-manager": &secretsmanager.Engine{},
	}
}

// emulatorURL returns the URL of a storage emulator. As in Google's libraries, the variable may be a
// host and a port only.
func emulatorURL(host string) string {
	if host == "" || strings.Contains(host, "://") {
		return host
	}
	return "http://" + host
}

func serviceAccountDir(getenv func(string) string) string {
	return cmp.Or(getenv("VEDETTE_SERVICE_ACCOUNT_DIR"), kubernetes.DefaultDir)
}

// All returns the engines of a program with settings.
func All(s Settings, getenv func(string) string) map[string]secret.Engine {
	engines := withoutSettings(getenv)
	switch v := s.Vault; {
	case !v.Enabled:
		engines["vault"] = unusable{"set secrets.vault.enabled, url and authMethod to resolve references to vault"}
	case !v.IsValid(): // a server that does not exist would be asked again and again
		engines["vault"] = unusable{"correct the settings below secrets.vault"}
	default:
		v.JWTFile = filepath.Join(serviceAccountDir(getenv), "token")
		engines["vault"] = vault.New(v)
	}
	return engines
}

// Bootstrap returns the engines for references within the settings themselves.
func Bootstrap(getenv func(string) string) map[string]secret.Engine {
	engines := withoutSettings(getenv)
	engines["vault"] = unusable{"the settings of vault must not be references to vault itself"}
	return engines
}

// unusable is an engine that exists and cannot be used.
type unusable struct{ hint string }

// Locate implements secret.Engine.
func (u unusable) Locate(r secret.Reference) (secret.Location, error) {
	return secret.Location{}, vedette.Errorf(vedette.Invalid, "%s: the engine is not configured: %s", r, u.hint)
}
