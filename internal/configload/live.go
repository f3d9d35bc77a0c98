package configload

import (
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// LiveKeys are the beginnings of the keys that can change while a program runs.
type LiveKeys []string

// Match reports whether a key can change.
func (l LiveKeys) Match(key string) bool {
	return slices.ContainsFunc(l, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// Changed returns the keys of those that can change whose values differ.
func (l LiveKeys) Changed(now, before []configfile.KeyValue) []string {
	return slices.DeleteFunc(configfile.ChangedKeys(now, before), func(key string) bool { return !l.Match(key) })
}

// NeedRestart returns the other keys whose values differ: they count from the next start on.
func (l LiveKeys) NeedRestart(now, before []configfile.KeyValue) []string {
	return slices.DeleteFunc(configfile.ChangedKeys(now, before), l.Match)
}

// InEffect returns the settings that are in effect in a program that was started with some settings and
// has adopted others since.
func (l LiveKeys) InEffect(started, adopted []configfile.KeyValue) []configfile.KeyValue {
	settings := slices.DeleteFunc(adopted, func(kv configfile.KeyValue) bool { return !l.Match(kv.Key) })
	return append(settings, slices.DeleteFunc(started, func(kv configfile.KeyValue) bool { return l.Match(kv.Key) })...)
}
