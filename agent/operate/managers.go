package operate

import (
	"slices"
	"strings"
)

// fieldManager is an entry of an object's managed fields, without the fields.
type fieldManager struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"`
	Subresource string `json:"subresource"`
}

// managers are the field managers that have written an object, as far as a prune needs them.
type managers struct {
	annotated bool     // it has the last-applied annotation
	applied   []string // field managers of server-side applies
	updated   []string // field managers of other writes
}

// maxManagers is how many managers of each sort are kept. API servers merge those that update an object if there
// are more than ten.
const maxManagers = 64

// namedManagers is how many of them a message names.
const namedManagers = 3

func (m *managers) add(entry fieldManager) {
	list := &m.updated
	if entry.Operation == "Apply" {
		list = &m.applied
	}
	if entry.Subresource == "" && len(*list) < maxManagers && !slices.Contains(*list, entry.Manager) {
		*list = append(*list, entry.Manager)
	}
}

// size returns the bytes of the names.
func (m *managers) size() (n int) {
	for _, name := range slices.Concat(m.applied, m.updated) {
		n += len(name) + 16
	}
	return n
}

// keptReason returns why a prune by a field manager leaves the object, or "" if the object was applied.
func (m *managers) keptReason(manager string) string {
	switch {
	case m.annotated, slices.Contains(m.applied, manager):
		return ""
	case len(m.applied) > 0:
		return "it was applied by the field manager " + listManagers(m.applied) + ", not by " + manager
	case len(m.updated) > 0:
		return "it was never applied; it was written by " + listManagers(m.updated)
	}
	return "the cluster does not record who wrote it"
}

func listManagers(names []string) string {
	if len(names) > namedManagers {
		return strings.Join(names[:namedManagers], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
