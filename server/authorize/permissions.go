package authorize

import (
	"slices"
	"strings"
)

// fiatResponse holds the fields of Fiat's /authorize/{user} that are used.
type fiatResponse struct {
	Admin                            bool    `json:"admin"`
	Accounts                         []grant `json:"accounts"`
	Applications                     []grant `json:"applications"`
	AllowAccessToUnknownApplications bool    `json:"allowAccessToUnknownApplications"`
}

type grant struct {
	Name           string   `json:"name"`
	Authorizations []Access `json:"authorizations"`
}

// permissions are what one user may do. They are immutable.
type permissions struct {
	admin               bool
	accounts            map[string][]Access // by name
	applications        map[string][]Access // by lower-case name: Spinnaker ignores their case
	unknownApplications bool                // whether applications that Fiat does not know are allowed
	byGate              *Caller             // if set, Gate's headers decide about accounts
	bytes               int64               // of memory, about
}

func (r fiatResponse) permissions() *permissions {
	return &permissions{admin: r.Admin, accounts: byName(r.Accounts, func(name string) string { return name }),
		applications:        byName(r.Applications, strings.ToLower),
		unknownApplications: r.AllowAccessToUnknownApplications,
		bytes:               sizeOf(r.Accounts) + sizeOf(r.Applications)}
}

// sizeOf returns about how many bytes of memory permissions take. A member of a map takes up to 120 besides its
// name, and each authorization 16.
func sizeOf(grants []grant) (bytes int64) {
	for _, g := range grants {
		bytes += 120 + int64(len(g.Name))
		for _, access := range g.Authorizations {
			bytes += 16 + int64(len(access))
		}
	}
	return bytes
}

func byName(grants []grant, key func(string) string) map[string][]Access {
	m := make(map[string][]Access, len(grants))
	for _, g := range grants {
		name := key(g.Name)
		m[name] = append(m[name], g.Authorizations...)
	}
	return m
}

// fallbackPermissions returns a caller's permissions if Fiat is unreachable and the fallback is on.
func fallbackPermissions(c Caller) *permissions {
	return &permissions{byGate: &c, unknownApplications: true}
}

// isAccountAllowed compares names byte by byte: Fiat returns them as it read them from this server,
// and another account whose name differs in case may be open to everyone.
func (p *permissions) isAccountAllowed(name string, access Access) bool {
	return p.admin || slices.Contains(p.accounts[name], access)
}

func (p *permissions) isApplicationAllowed(name string, access Access) bool {
	if p.admin {
		return true
	}
	granted, known := p.applications[strings.ToLower(name)]
	if !known && name != "" && p.unknownApplications {
		return true
	}
	return slices.Contains(granted, access)
}
