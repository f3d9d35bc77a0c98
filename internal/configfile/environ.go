package configfile

import (
	"reflect"
	"strings"
)

// environment lets variables override what the file says: for each key that
// takes a single value or a list of them, the prefix and its path in capitals
// with underscores for dots. Entries of lists can't be reached that way.
func (d *decoder) environment(target reflect.Value) {
	d.leaves(place{}, target, func(p place, _ spec, leaf reflect.Value) {
		d.variable(p, d.options.EnvPrefix+variableName(p.path), leaf)
	})
}

// variableName turns clouddriver.tls.serverName into CLOUDDRIVER_TLS_SERVERNAME,
// by Spring's rule: dots become underscores, dashes go.
func variableName(path string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "").Replace(path))
}

// fallbacks reads the variables that count where nothing else was said.
func (d *decoder) fallbacks(target reflect.Value) {
	d.leaves(place{}, target, func(p place, s spec, leaf reflect.Value) {
		if s.env != "" && !d.report.IsSet(p.path) {
			d.variable(p, s.env, leaf)
		}
	})
}

func (d *decoder) variable(p place, name string, leaf reflect.Value) {
	value, ok := d.options.lookup(name)
	if !ok || value == "" {
		return
	}
	at := Position{File: "environment variable " + name}
	d.value(p, &node{shape: scalar, at: at, text: value, raw: true}, leaf)
}

// leaves visits each key that one variable can hold.
func (d *decoder) leaves(p place, target reflect.Value, visit func(place, spec, reflect.Value)) {
	for _, s := range specsOf(target.Type()) {
		f := target.FieldByIndex(s.index)
		below := p.key(s)
		switch {
		case f.Addr().Type().Implements(unmarshaler), f.Kind() == reflect.Map:
		case !isLeaf(indirect(f.Type())) && f.Kind() == reflect.Struct:
			d.leaves(below, f, visit)
		case isLeaf(indirect(f.Type())):
			visit(below, s, f)
		}
	}
}
