package clouddriver

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/store"
)

// applicationCache keeps the encoded list of all applications. Gate asks for it every few
// seconds, and of thousands of applications few change in between: what has not changed is
// copied from the list before.
type applicationCache struct {
	mu      sync.Mutex
	current *applicationList // nil before the first request
}

// applicationList is an encoded list of applications. It is read-only.
type applicationList struct {
	inventory *store.Inventory
	settings  *infrastructure.Settings
	answer    *infrastructure.Answer
	entries   []applicationEntry // sorted by name in lower case
	byName    map[string]int     // index in entries
}

// applicationEntry is where an application stands in the answer.
type applicationEntry struct {
	application *store.Application
	start, end  int
}

// get returns the list of an inventory.
func (c *applicationCache) get(inventory *store.Inventory, settings *infrastructure.Settings) (*applicationList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && c.current.inventory == inventory && c.current.settings.SameViews(settings) {
		return c.current, nil
	}
	list, err := newApplicationList(inventory, settings, c.current)
	if err == nil {
		c.current = list
	}
	return list, err
}

// newApplicationList encodes the applications of an inventory. previous may be nil.
func newApplicationList(inventory *store.Inventory, settings *infrastructure.Settings,
	previous *applicationList) (*applicationList, error) {
	if previous != nil && !previous.settings.SameViews(settings) {
		previous = nil
	}
	list := &applicationList{inventory: inventory, settings: settings, byName: map[string]int{}}
	var e encoder
	e.array(func() {
		for _, name := range sortedByLowerCase(inventory.Applications()) {
			list.add(&e, inventory.Application(name), previous)
		}
	})
	var err error
	list.answer, err = newAnswer(e.b)
	return list, err
}

// add appends an application, unless its accounts hide all of it.
func (l *applicationList) add(e *encoder, application *store.Application, previous *applicationList) {
	known := previous.encoded(application)
	clusters := []accountClusters(nil)
	if known == nil {
		clusters = visibleClusters(application, l.settings)
		if len(clusters) == 0 {
			return
		}
	}
	e.separate()
	start := len(e.b)
	if known != nil {
		e.b = append(e.b, known...)
	} else {
		e.application(application.Name, clusters)
	}
	l.byName[application.Name] = len(l.entries)
	l.entries = append(l.entries, applicationEntry{application, start, len(e.b)})
}

// encoded returns what the list shows of an application, or nil if it shows another state of it.
func (l *applicationList) encoded(application *store.Application) []byte {
	if l == nil {
		return nil
	}
	i, ok := l.byName[application.Name]
	if !ok || l.entries[i].application != application {
		return nil
	}
	return l.answer.Body[l.entries[i].start:l.entries[i].end]
}

// filter encodes the applications that a caller may read.
func (l *applicationList) filter(readable func(application string) bool) []byte {
	var e encoder
	e.array(func() {
		for _, entry := range l.entries {
			if readable(entry.application.Name) {
				e.separate()
				e.b = append(e.b, l.answer.Body[entry.start:entry.end]...)
			}
		}
	})
	return e.b
}

// application appends an application like Clouddriver's KubernetesApplication.
func (e *encoder) application(name string, accounts []accountClusters) {
	e.object(func() {
		e.text("name", name)
		e.name("attributes")
		e.object(func() { e.text("name", name) })
		e.name("clusterNames")
		e.object(func() {
			for _, account := range accounts {
				e.member(string(account.name))
				e.texts(account.clusters)
			}
		})
	})
}

// sortedByLowerCase sorts names like Clouddriver does. Those that differ in case only are sorted
// by their bytes.
func sortedByLowerCase(names []string) []string {
	type pair struct{ lower, name string }
	pairs := make([]pair, len(names))
	for i, name := range names {
		pairs[i] = pair{strings.ToLower(name), name}
	}
	slices.SortFunc(pairs, func(x, y pair) int {
		return cmp.Or(strings.Compare(x.lower, y.lower), strings.Compare(x.name, y.name))
	})
	sorted := make([]string, len(pairs))
	for i, p := range pairs {
		sorted[i] = p.name
	}
	return sorted
}
