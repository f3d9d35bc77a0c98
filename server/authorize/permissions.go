package authorize

import "strings"

// fiatResponse is what Fiat answers at /authorize/{user}, as far as it is looked at.
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

// permissions are what one user may do. They are not changed once they are made.
type permissions struct {
	admin               bool
	accounts            map[string][]Access // by name in lower case
	applications        map[string][]Access
	unknownApplications bool // those that Fiat does not know are open
}

func (r fiatResponse) permissions() *permissions {
	return &permissions{admin: r.Admin, accounts: byName(r.Accounts), applications: byName(r.Applications), unknownApplications: r.AllowAccessToUnknownApplications}
}

func byName(grants []grant) map[string][]Access {
	m := make(map[string][]Access, len(grants))
	for _, g := range grants {
		name := strings.ToLower(g.Name)
		m[name] = append(m[name], g.Authorizations...)
	}
	return m
}

// fallbackPermissions is what a caller may do whom Fiat can't be asked about, where that
// is trusted.
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
