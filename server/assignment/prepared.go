package assignment

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Prepared is what it takes to compare properties in little time. An agent may name tens of thousands of roles, and a Fleet
// compares those of all agents of an account while everybody waits. So properties are prepared before they reach it.
type Prepared struct {
	digests     map[string][sha256.Size]byte // of each property's JSON, by its name
	permissions *vedette.Permissions         // with sorted roles; nil for an account that is open to everyone
}

// Prepare prepares properties.
func Prepare(p vedette.Properties) *Prepared {
	prepared := &Prepared{digests: map[string][sha256.Size]byte{}, permissions: p.Permissions.Sorted()}
	var raw map[string]json.RawMessage
	if text, err := json.Marshal(p); err != nil || json.Unmarshal(text, &raw) != nil {
		return prepared // cannot happen: it was decoded from JSON
	}
	for name, value := range raw {
		prepared.digests[name] = sha256.Sum256(value)
	}
	return prepared
}

// equals reports whether the properties are the same.
func (p *Prepared) equals(other *Prepared) bool { return maps.Equal(p.digests, other.digests) }

// differing returns the names of the properties that differ, sorted.
func (p *Prepared) differing(other *Prepared) (names []string) {
	all := maps.Clone(p.digests)
	maps.Copy(all, other.digests)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, isIn := p.digests[name]
		if b, isInOther := other.digests[name]; a != b || isIn != isInOther {
			names = append(names, name)
		}
	}
	return names
}

// describeDifferences names the properties in which a registration differs from the
// effective ones, for example "permissions (READ [dev] is in effect, not open to everyone), kinds".
// It returns "" if they are equal.
func describeDifferences(effective StoredAccount, j job) string {
	names := effective.Prepared.differing(j.prepared)
	for i, name := range names {
		if name == "permissions" {
			names[i] = fmt.Sprintf("permissions (%s is in effect, not %s)", formatPermissions(effective.Properties.Permissions),
				formatPermissions(j.registered.Properties.Permissions))
		}
	}
	return strings.Join(names, ", ")
}
