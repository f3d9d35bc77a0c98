package configreload

import (
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Reloadable has prefixes of the keys that a running program reloads. Changes of other keys require a restart.
type Reloadable []string

// Match reports whether a key is reloadable.
func (r Reloadable) Match(key string) bool {
	return slices.ContainsFunc(r, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// Changed returns the reloadable keys whose values differ.
func (r Reloadable) Changed(now, before []configfile.KeyValue) []string {
	return slices.DeleteFunc(configfile.ChangedKeys(now, before), func(key string) bool { return !r.Match(key) })
}

// NeedRestart returns the other keys whose values differ.
func (r Reloadable) NeedRestart(now, before []configfile.KeyValue) []string {
	return slices.DeleteFunc(configfile.ChangedKeys(now, before), r.Match)
}

// InEffect returns the settings that are in effect in a program that was started with some settings and
// has adopted others since.
func (r Reloadable) InEffect(started, adopted []configfile.KeyValue) []configfile.KeyValue {
	settings := slices.DeleteFunc(adopted, func(kv configfile.KeyValue) bool { return !r.Match(kv.Key) })
	return append(settings, slices.DeleteFunc(started, func(kv configfile.KeyValue) bool { return r.Match(kv.Key) })...)
}
