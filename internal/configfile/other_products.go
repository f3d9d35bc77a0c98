package configfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/nearest"
)

const (
	maxOtherProductKeys = 1000 // keys of other products that are remembered
	maxHints            = 1000 // unknown keys for which a similar one is searched, which takes a while
)

// UnknownKeys returns the unknown keys that belong to other products, in the order of the files:
// groups at the top that no key of ours resembles, and Options.OtherProductKeys.
func (r *Report) UnknownKeys() []string {
	var paths []string
	for _, key := range slices.SortedFunc(slices.Values(r.otherProducts), keyPosition.compare) {
		if !slices.Contains(paths, key.path) {
			paths = append(paths, key.path)
		}
	}
	return paths
}

// HasUnknownKey reports whether a key of another product is set.
func (r *Report) HasUnknownKey(path string) bool {
	return slices.ContainsFunc(r.otherProducts, func(key keyPosition) bool { return relaxed(key.path) == relaxed(path) })
}

func (r *Report) addOtherProductKey(at Position, path string) {
	if len(path) > 100 {
		path = strings.ToValidUTF8(path[:100], "") + "…"
	}
	if len(r.otherProducts) < maxOtherProductKeys {
		r.otherProducts = append(r.otherProducts, keyPosition{path, at})
	}
}

// handleUnknownKey reports a key that a struct does not have, or sets it aside if it belongs to
// another product. A key at the top that resembles one of ours is an error, because a misspelt
// group would lose all its settings.
func (d *decoder) handleUnknownKey(p location, f field, target reflect.Type) {
	path := joinPath(p.path, withoutValue(f.key))
	if d.isOtherProductKey(path) {
		d.report.addOtherProductKey(f.at, path)
		return
	}
	hint, isCompared := "", d.hints < maxHints
	if isCompared {
		d.hints++
		hint = d.hintFor(p, f.key, target)
	}
	switch {
	case hint == "" && p.path == "" && isCompared:
		d.report.addOtherProductKey(f.at, path)
	case hint == "" && isCompared && len(activeKeys(target)) > 1:
		d.report.addAboutKey(f.at, path, "unknown key %q: the keys of %s are %s", path, p.path, nearest.List(activeKeys(target)))
	case hint == "":
		d.report.addAboutKey(f.at, path, "unknown key %q", path)
	default:
		d.report.addAboutKey(f.at, path, "unknown key %q: did you mean %q?", path, hint)
	}
}

// withoutValue returns a key that is not known without what follows a colon in it. YAML takes a key, a
// colon and a value without a space for one key, and the value may be a password.
func withoutValue(key string) string {
	name, value, found := strings.Cut(key, ":")
	if !found || value == "" {
		return key
	}
	return name + ":" + mask
}

// hintFor returns the key that a user may have meant, or "". At the top, keys without an effect are
// not suggested: "docker" is not a misspelt "dockerRegistry".
func (d *decoder) hintFor(p location, key string, target reflect.Type) string {
	specs := keySpecs(target)
	if p.path == "" {
		specs = slices.DeleteFunc(slices.Clone(specs), func(s keySpec) bool { return s.status != ActiveKey })
	}
	first, _, _ := strings.Cut(key, ".")
	hints := nearest.Matches(first, append(keyNames(specs), d.renamedKeys(p)...))
	if hints == nil && p.path == "" {
		hints = uniquePathOf(target, key)
	}
	if hints == nil {
		return ""
	}
	return hints[0]
}

// activeKeys returns the keys of a group that have an effect, sorted.
func activeKeys(target reflect.Type) (names []string) {
	for _, s := range keySpecs(target) {
		if s.status == ActiveKey {
			names = append(names, s.name)
		}
	}
	slices.Sort(names)
	return names
}

// renamedKeys returns the keys of a group that are read as others, as a user writes them.
func (d *decoder) renamedKeys(p location) (keys []string) {
	for _, rename := range d.options.Renames {
		if rest, ok := strings.CutPrefix(rename.From, p.path+"."); ok {
			key, _, _ := strings.Cut(rest, ".")
			keys = append(keys, key)
		}
	}
	return keys
}

// isOtherProductKey reports whether a path is one of Options.OtherProductKeys or below one. The
// notation does not matter.
func (d *decoder) isOtherProductKey(path string) bool {
	path = relaxed(path)
	return slices.ContainsFunc(d.options.OtherProductKeys, func(key string) bool {
		rest, found := strings.CutPrefix(path, relaxed(key))
		return found && (rest == "" || rest[0] == '.')
	})
}

// withoutOtherProducts removes the groups that another product has where we have a single value: Spring's
// logging.level has a key for each logger. Options.OtherProductKeys must name such a key itself.
func (d *decoder) withoutOtherProducts(p location, values []field, target reflect.Type) []field {
	if isMergeable(target) || isUnmarshaler(target) || !slices.Contains(d.options.OtherProductKeys, p.path) {
		return values
	}
	return slices.DeleteFunc(values, func(f field) bool {
		if f.value.kind != mappingNode {
			return false
		}
		for _, inner := range f.value.fields {
			d.report.addOtherProductKey(inner.at, joinPath(p.path, inner.key))
		}
		return true
	})
}

// shorten joins keys for a log line.
func shorten(keys []string) string {
	const shown = 50
	if len(keys) <= shown {
		return strings.Join(keys, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(keys[:shown], ", "), len(keys)-shown)
}
