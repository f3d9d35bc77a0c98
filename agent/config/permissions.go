package config

import (
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// Permissions reads both forms of an account's permissions: the predecessor's
// list of maps and Clouddriver's one map. Whatever can't be read refuses the
// account, for leaving it out would open the account to everyone.
type Permissions struct {
	given *vedette.Permissions // nil where there are none
}

// String returns "READ [dev], WRITE [ops]", or "open to everyone".
func (p *Permissions) String() string {
	if p.given == nil {
		return "open to everyone"
	}
	var parts []string
	for _, sort := range sorts(p.given) {
		if len(*sort.roles) > 0 {
			parts = append(parts, fmt.Sprintf("%s [%s]", sort.name, strings.Join(*sort.roles, ", ")))
		}
	}
	return strings.Join(parts, ", ")
}

type sort struct {
	name  string
	roles *[]string
}

func sorts(p *vedette.Permissions) []sort {
	return []sort{{"READ", &p.Read}, {"WRITE", &p.Write}, {"EXECUTE", &p.Execute}}
}

// UnmarshalConfig reads either form. An empty list or map is the same as none,
// as Clouddriver writes it for open accounts.
func (p *Permissions) UnmarshalConfig(v configfile.Value) {
	fields, ok := permissionFields(v)
	if !ok || len(fields) == 0 {
		return
	}
	p.given = &vedette.Permissions{}
	seen, good := map[string]bool{}, true
	for _, f := range fields {
		name := strings.ToUpper(f.Key)
		if seen[name] {
			f.Value.Refuse("%q names %s twice", v.Path(), name)
		}
		seen[name] = true
		good = p.read(name, f) && good
	}
	if good && len(p.given.Read)+len(p.given.Write)+len(p.given.Execute) == 0 {
		v.Refuse("%q names no role at all: leave it out to open the account to everyone", v.Path())
	}
	if err := p.given.Normalize(); err != nil {
		v.Refuse("%q: %s", v.Path(), err)
	}
}

// permissionFields gathers READ, WRITE and EXECUTE from either form.
func permissionFields(v configfile.Value) ([]configfile.Field, bool) {
	if fields, ok := v.Fields(); ok {
		return fields, true
	}
	items, ok := v.Items()
	if !ok {
		v.Refuse("%q must be a list such as \"- READ: [role]\" or a map of READ, WRITE and EXECUTE, and %s stands there", v.Path(), v)
		return nil, false
	}
	var all []configfile.Field
	for _, item := range items {
		fields, ok := item.Fields()
		if !ok {
			item.Refuse("%q must be READ, WRITE or EXECUTE with a list of roles, and %s stands there", item.Path(), item)
			return nil, false
		}
		all = append(all, fields...)
	}
	return all, true
}

// read takes the roles of one permission. It returns false where it refused.
func (p *Permissions) read(name string, f configfile.Field) (ok bool) {
	for _, sort := range sorts(p.given) {
		if sort.name == name {
			*sort.roles, ok = roles(f.Value)
			return ok
		}
	}
	f.Value.Refuse("%q is no permission: READ, WRITE and EXECUTE are", f.Value.Path())
	return false
}

// roles reads a list of roles, or one role alone. White space within them is
// kept, so that it is refused.
func roles(v configfile.Value) (all []string, ok bool) {
	items, isList := v.Items()
	if !isList {
		items = []configfile.Value{v}
	}
	for _, item := range items {
		role, isText := item.Text()
		if !isText {
			item.Refuse("%q must be a role, and %s stands there", item.Path(), item)
			return nil, false
		}
		all = append(all, role)
	}
	return all, true
}
