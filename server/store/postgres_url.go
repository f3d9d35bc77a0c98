package store

import (
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// sslModes are the values of sslmode that the driver knows.
var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// explainPostgresURL returns why the driver rejects a URL. The driver's own error is left out, because it
// may contain the URL and so the password.
func explainPostgresURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return unreadablePostgresURL("")
	}
	query := u.Query()
	if mode := query.Get("sslmode"); mode != "" && !slices.Contains(sslModes, mode) {
		return unreadablePostgresURL("sslmode must be one of " + strings.Join(sslModes, ", "))
	}
	for _, key := range []string{"sslrootcert", "sslcert", "sslkey"} {
		if file := query.Get(key); file != "" && !isReadable(file) {
			return unreadablePostgresURL(key + " names the file " + file + ", which cannot be read")
		}
	}
	if query.Has("sslcert") != query.Has("sslkey") {
		return unreadablePostgresURL("sslcert and sslkey must be set together")
	}
	return unreadablePostgresURL("")
}

func isReadable(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	_ = file.Close() // nothing was written
	return true
}

// unreadablePostgresURL returns an error with a reason; "" if it is not known.
func unreadablePostgresURL(reason string) error {
	if reason == "" {
		reason = "it must look like postgres://USER:PASSWORD@HOST:5432/DATABASE, with special characters of the password written as %XX"
	}
	return vedette.Errorf(vedette.Invalid, "the PostgreSQL URL cannot be read: %s", reason)
}
