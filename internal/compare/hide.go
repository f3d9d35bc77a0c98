package compare

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// hideAccounts removes what an answer says of accounts that are not compared: entries of lists that
// name such an account, and entries of maps whose key is one. Manifests are left as they are.
func hideAccounts(form string, v any, hidden []string) any {
	if len(hidden) == 0 {
		return v
	}
	h := accountFilter{hidden: hidden, nameIsAccount: strings.HasPrefix(form, "/credentials")}
	return h.value(v)
}

type accountFilter struct {
	hidden        []string
	nameIsAccount bool
}

func (h accountFilter) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if key != "manifest" {
				v[key] = h.value(value)
			}
			if slices.Contains(h.hidden, key) && isContainer(value) {
				delete(v, key)
			}
		}
	case []any:
		return slices.DeleteFunc(v, func(item any) bool {
			tree, ok := item.(map[string]any)
			if !ok {
				return false
			}
			hadClusters := hasEntries(tree["clusterNames"])
			h.value(tree)
			return h.isHidden(tree) || hadClusters && !hasEntries(tree["clusterNames"])
		})
	}
	return v
}

func (h accountFilter) isHidden(item map[string]any) bool {
	for _, key := range []string{"account", "accountName"} {
		if name, ok := item[key].(string); ok && slices.Contains(h.hidden, name) {
			return true
		}
	}
	name, ok := item["name"].(string)
	return ok && h.nameIsAccount && slices.Contains(h.hidden, name)
}

func isContainer(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func hasEntries(v any) bool {
	tree, ok := v.(map[string]any)
	return ok && len(tree) > 0
}

// hiddenValue replaces values in examples that may be secret.
const hiddenValue = "***"

// secretKeys are names of fields whose content may be secret, wherever they are.
var secretKeys = regexp.MustCompile(`(?i)password|passwd|secret|token|credential|kubeconfig|private|apikey|api_key`)

// secretFields are the fields of manifests whose content may be secret.
var secretFields = []string{"annotations", "data", "stringData", "binaryData", "env", "args", "command", "last-applied-configuration"}

// hideSecrets replaces strings in a value of a difference that may be secret. Numbers and booleans
// remain.
func hideSecrets(field, value string) string {
	v, err := decodeValue([]byte(value))
	if err != nil {
		return value // absent
	}
	hide := false
	for part := range strings.SplitSeq(field, ".") {
		hide = hide || isSecretKey(part)
	}
	return encode(hideStrings(v, hide && !strings.HasSuffix(field, ".<spinnaker>")))
}

func isSecretKey(key string) bool {
	return slices.Contains(secretFields, key) || secretKeys.MatchString(key)
}

func hideStrings(v any, hide bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = hideStrings(value, (hide || isSecretKey(key)) && !isSpinnakerKey(key))
		}
	case []any:
		for i, value := range v {
			v[i] = hideStrings(value, hide)
		}
	case string, json.Number:
		if hide {
			return hiddenValue
		}
	}
	return v
}

// isSpinnakerKey reports whether a key is one of Spinnaker's annotations, which differ often and are
// not secret.
func isSpinnakerKey(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && strings.HasSuffix(domain, ".spinnaker.io")
}
