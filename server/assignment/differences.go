package assignment

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// describeDifferences names the properties in which the registered properties differ from the
// effective ones, for example "permissions (READ [dev] is in effect, not open to everyone), kinds".
// It returns "" if they are equal.
func describeDifferences(effective, registered vedette.Properties) string {
	a, b := propertiesByName(effective), propertiesByName(registered)
	maps.Copy(a, missing(b, a))
	var names []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		switch {
		case a[name] == b[name]:
		case name == "permissions":
			names = append(names, fmt.Sprintf("permissions (%s is in effect, not %s)", formatPermissions(effective.Permissions),
				formatPermissions(registered.Permissions)))
		default:
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// propertiesByName returns each property's stored JSON by its name.
func propertiesByName(p vedette.Properties) map[string]string {
	var raw map[string]json.RawMessage
	if text, err := json.Marshal(p); err != nil || json.Unmarshal(text, &raw) != nil {
		return map[string]string{} // cannot happen: it was decoded from JSON
	}
	all := make(map[string]string, len(raw))
	for name, value := range raw {
		all[name] = string(value)
	}
	return all
}

// missing returns the names in b that are not in a, with empty values.
func missing(b, a map[string]string) map[string]string {
	result := map[string]string{}
	for name := range b {
		if _, ok := a[name]; !ok {
			result[name] = ""
		}
	}
	return result
}
