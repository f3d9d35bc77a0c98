package configtest

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// canary is the secret in the files of WithSecrets.
const canary = "c4n4ry-secret"

// WithSecrets returns a file for each key of a configuration, in which the key has a value with a secret:
// the secret alone, as a reference, and in a URL.
func WithSecrets(config any) (files []Wrong) {
	for _, key := range configfile.Keys(config) {
		if key.Type == "" || strings.HasPrefix(key.Path, "spring.") { // they select files, before secrets can be fetched
			continue
		}
		for _, value := range valuesWithSecret(key.Type) {
			file := document(key.Path, value)
			files = append(files, Wrong{Path: key.Path, File: strings.TrimSuffix(file, "}") + ", hidden: 'encrypted:noop!" + canary + "'}"})
		}
	}
	return files
}

func valuesWithSecret(typeName string) []string {
	const reference = "'encrypted:noop!" + canary + "'"
	switch {
	case strings.HasPrefix(typeName, "list of "):
		return []string{"[" + reference + "]"}
	case strings.HasPrefix(typeName, "map of "):
		return []string{"{x: " + reference + "}"}
	case typeName == "string", typeName == "URL":
		return []string{reference, "'http://agent:${hidden}@${hidden}.example:80/${hidden}?a=${hidden}'"}
	}
	return []string{reference}
}

// ShowsSecret reports whether what a program prints contains the secret of WithSecrets.
func ShowsSecret(printed ...any) bool {
	text := fmt.Sprintln(printed...)
	return strings.Contains(text, "c4n4ry") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))[:6])
}
