package task

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/server/manifest"
)

// shortest is how long a value must be to be hidden: to hide shorter ones would
// make a text unreadable and tell their places.
const shortest = 4

// veil hides the values of a Secret in a text about it. A cluster may quote what
// it refuses, and the agent hides that; this is for whatever else may speak.
func veil(secret any, said string) string {
	if secret == nil || said == "" {
		return said
	}
	values := valuesOf(secret, false)
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, v := range values {
		if len(v) >= shortest {
			said = strings.ReplaceAll(said, v, "***")
		}
	}
	return said
}

// secretOf returns what was submitted of a kind where that is a Secret, and else
// nil.
func secretOf(kind string, submitted any) any {
	if kind == "secret" {
		return submitted
	}
	return nil
}

// valuesOf returns the texts below data, stringData and the values of a patch,
// as they stand, as JSON writes them, encoded and decoded.
func valuesOf(v any, within bool) []string {
	var all []string
	switch v := v.(type) {
	case manifest.Manifest:
		return valuesOf(map[string]any(v), within)
	case map[string]any:
		for key, inner := range v {
			all = append(all, valuesOf(inner, within || key == "data" || key == "stringData" || key == "value" ||
				key == "kubectl.kubernetes.io/last-applied-configuration")...)
		}
	case []any:
		for _, inner := range v {
			all = append(all, valuesOf(inner, within)...)
		}
	case string:
		if !within {
			return nil
		}
		all = append(all, v)
		if quoted, err := json.Marshal(v); err == nil {
			all = append(all, strings.Trim(string(quoted), `"`))
		}
		all = append(all, base64.StdEncoding.EncodeToString([]byte(v))) // which a cluster makes of stringData
		if decoded, err := base64.StdEncoding.DecodeString(v); err == nil {
			all = append(all, string(decoded))
		}
	}
	return all
}
