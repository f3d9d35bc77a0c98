// Package settings has the groups of keys that the configurations of both programs share.
package settings

import (
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// FilePath removes Spring's prefix from the name of a file.
func FilePath(name string) string { return strings.TrimPrefix(name, "file:") }

// CheckFile rejects locations that only Spring can load.
func CheckFile(key, file string, c configfile.Checker) {
	if strings.HasPrefix(file, "classpath:") || strings.HasPrefix(file, "configserver:") {
		c.Problem(key, " must be the path of a file, optionally with the prefix file:")
	}
}

// KeyStoreHint says what to do with the keystore of a file that was copied from Clouddriver, or nothing.
func KeyStoreHint(r *configfile.Report) string {
	if !r.HasUnknownKey("server.ssl.keyStore") {
		return ""
	}
	return ": server.ssl.keyStore cannot be read, because only Java reads keystores: convert it to PEM with openssl pkcs12"
}
