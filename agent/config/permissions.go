package config

import (
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// Permissions reads both forms of an account's permissions: the predecessor's
// list of maps and Clouddriver's map. Permissions that cannot be read reject the
// account, because ignoring them would open the account to everyone.
type Permissions struct {
	parsed *vedette.Permissions // nil if everyone may use the account
}

// ConfigTypeName returns the type's name in the configuration reference.
func (Permissions) ConfigTypeName() string { return "list or map of roles" }

// String returns "READ [dev], WRITE [ops]", or "open to everyone".
func (p *Permissions) String() string {
	if p.parsed == nil {
		return "open to everyone"
	}
	var parts []string
	for _, entry := range rolesByPermission(p.parsed) {
		if len(*entry.roles) > 0 {
			parts = append(parts, fmt.Sprintf("%s [%s]", entry.name, strings.Join(*entry.roles, ", ")))
		}
	}
	return strings.Join(parts, ", ")
}

type permissionRoles struct {
	name  string
	roles *[]string
}

func rolesByPermission(p *vedette.Permissions) []permissionRoles {
	return []permissionRoles{{"READ", &p.Read}, {"WRITE", &p.Write}, {"EXECUTE", &p.Execute}}
}

// UnmarshalConfig reads either form. An empty list or map opens the account to
// everyone, because Clouddriver's files mark open accounts in this way.
func (p *Permissions) UnmarshalConfig(v configfile.Value) {
	fields, ok := permissionFields(v)
	if !ok || len(fields) == 0 {
		return
	}
	p.parsed = &vedette.Permissions{}
	seen, valid := map[string]bool{}, true
	for _, f := range fields {
		name := strings.ToUpper(f.Key)
		if seen[name] {
			f.Value.AddProblem("%q must contain %s only once", v.Path(), name)
		}
		seen[name] = true
		valid = p.readRoles(name, f) && valid
	}
	if valid && len(p.parsed.Read)+len(p.parsed.Write)+len(p.parsed.Execute) == 0 {
		v.AddProblem("%q must contain at least one role: remove it if everyone may use the account", v.Path())
	}
	if err := p.parsed.Normalize(); err != nil {
		v.AddProblem("%q: %s", v.Path(), err)
	}
}

// permissionFields returns the fields READ, WRITE and EXECUTE of either form. It
// returns false if it added a problem.
func permissionFields(v configfile.Value) ([]configfile.Field, bool) {
	if fields, ok := v.Fields(); ok {
		return fields, true
	}
	items, ok := v.Items()
	if !ok {
		v.AddProblem("%q must be a list, for example \"- READ: [role]\", or a map of READ, WRITE and EXECUTE, got %s", v.Path(), v)
		return nil, false
	}
	var all []configfile.Field
	for _, item := range items {
		fields, ok := item.Fields()
		if !ok {
			item.AddProblem("%q must be READ, WRITE or EXECUTE with a list of roles, got %s", item.Path(), item)
			return nil, false
		}
		all = append(all, fields...)
	}
	return all, true
}

// readRoles reads the roles of one permission. It returns false if it added a problem.
func (p *Permissions) readRoles(name string, f configfile.Field) (ok bool) {
	for _, entry := range rolesByPermission(p.parsed) {
		if entry.name == name {
			*entry.roles, ok = rolesOf(f.Value)
			return ok
		}
	}
	f.Value.AddProblem("%q must be READ, WRITE or EXECUTE, got %q", f.Value.Path(), f.Key)
	return false
}

// rolesOf reads a list of roles, or one value with a role or, as in Spring, with several and commas between
// them. It does not trim white space but beside commas, because roles with white space must be rejected. It
// returns false if it added a problem.
func rolesOf(v configfile.Value) (roles []string, ok bool) {
	items, isList := v.Items()
	if !isList {
		items = []configfile.Value{v}
	}
	for _, item := range items {
		role, isText := item.Text()
		if !isText {
			item.AddProblem("%q must be a role, got %s", item.Path(), item)
			return nil, false
		}
		if isList {
			roles = append(roles, role)
		} else {
			roles = splitRoles(role)
		}
	}
	return roles, true
}

func splitRoles(text string) []string {
	roles := strings.Split(text, ",")
	if len(roles) == 1 {
		return roles
	}
	for i, role := range roles {
		roles[i] = strings.TrimSpace(role)
	}
	return roles
}
