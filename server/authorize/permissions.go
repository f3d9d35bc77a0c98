package authorize

import "strings"

// fiatResponse holds the fields of Fiat's /authorize/{user} that are used.
type fiatResponse struct {
	Admin                            bool
	Accounts                         []grant
	Applications                     []grant
	AllowAccessToUnknownApplications bool
}

type grant struct {
	Name           string
	Authorizations []Access
}

// permissions are what one user may do. They are immutable.
type permissions struct {
	admin               bool
	accounts            map[string][]Access // by lower-case name
	applications        map[string][]Access
	unknownApplications bool // whether applications that Fiat does not know are allowed
}

func (r fiatResponse) permissions() *permissions {
	return &permissions{admin: r.Admin, accounts: byName(r.Accounts), applications: byName(r.Applications),
		unknownApplications: r.AllowAccessToUnknownApplications}
}

func byName(grants []grant) map[string][]Access {
	m := make(map[string][]Access, len(grants))
	for _, g := range grants {
		name := strings.ToLower(g.Name)
		m[name] = append(m[name], g.Authorizations...)
	}
	return m
}

// fallbackPermissions returns a caller's permissions if Fiat is unreachable and the fallback is on.
func fallbackPermissions(c Caller) *permissions {
	p := &permissions{accounts: map[string][]Access{}, unknownApplications: true}
	for _, account := range c.Accounts {
		p.accounts[strings.ToLower(account)] = []Access{Read, Write, Execute}
	}
	return p
}

func (p *permissions) isAccountAllowed(name string, access Access) bool {
	return p.admin || contains(p.accounts[strings.ToLower(name)], access)
}

func (p *permissions) isApplicationAllowed(name string, access Access) bool {
	if p.admin {
		return true
	}
	granted, known := p.applications[strings.ToLower(name)]
	if !known && name != "" && p.unknownApplications {
		return true
	}
	return contains(granted, access)
}

func contains(granted []Access, wanted Access) bool {
	for _, access := range granted {
		if access == wanted {
			return true
		}
	}
	return false
}
