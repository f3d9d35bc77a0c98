package configfile

import (
	"reflect"
	"strings"
)

// applyEnvironment sets keys from environment variables, which override the file. A variable's name
// is the prefix and the key's path in capitals, with underscores for dots. Keys in entries of lists
// cannot be set this way.
func (d *decoder) applyEnvironment(target reflect.Value) {
	d.walkLeaves(location{}, target, func(p location, s keySpec, leaf reflect.Value) {
		for _, name := range variablesOf(d.options.EnvPrefix, p.path, s) {
			if d.applyVariable(p, name, leaf) {
				return // by its own name, which counts more than an alias
			}
		}
	})
}

// variablesOf returns the names of the variables that set a key: one by its name, and one by each of its aliases.
func variablesOf(prefix, path string, s keySpec) (names []string) {
	section := strings.TrimSuffix(path, s.name)
	for _, key := range s.names() {
		names = append(names, prefix+variableName(section+key))
	}
	return names
}

// variableName converts clouddriver.tls.serverName to CLOUDDRIVER_TLS_SERVERNAME. As in Spring,
// dots become underscores and dashes are removed.
func variableName(path string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "").Replace(path))
}

// applyFallbackVariables reads the variables of keys that nothing else has set.
func (d *decoder) applyFallbackVariables(target reflect.Value) {
	d.walkLeaves(location{}, target, func(p location, s keySpec, leaf reflect.Value) {
		if s.env != "" && !d.report.IsSet(p.path) {
			d.applyVariable(p, s.env, leaf)
		}
	})
}

// applyVariable sets a key from a variable, and reports whether there is one.
func (d *decoder) applyVariable(p location, name string, leaf reflect.Value) bool {
	value, ok := d.options.lookup(name)
	if !ok || value == "" {
		return false
	}
	at := Position{File: "environment variable " + name}
	d.decodeValue(p, &node{kind: scalarNode, at: at, text: value, literal: true}, leaf)
	return true
}

// walkLeaves visits each key that one variable can set.
func (d *decoder) walkLeaves(p location, target reflect.Value, visit func(location, keySpec, reflect.Value)) {
	for _, s := range keySpecs(target.Type()) {
		f := target.FieldByIndex(s.index)
		location := p.key(s)
		switch {
		case f.Addr().Type().Implements(unmarshalerType), f.Kind() == reflect.Map:
		case !s.isLeaf && f.Kind() == reflect.Struct:
			d.walkLeaves(location, f, visit)
		case s.isLeaf:
			visit(location, s, f)
		}
	}
}
