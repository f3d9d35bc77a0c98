package applications

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/jsonwriter"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/store/read"
)

// applicationCache keeps the encoded list of all applications. Gate asks for it every few
// seconds, and of thousands of applications few change in between: what has not changed is
// copied from the list before, also in compressed form.
type applicationCache struct {
	mu      sync.Mutex
	current *applicationList // nil before the first request
}

// applicationList is an encoded list of applications. It is read-only.
type applicationList struct {
	inventory *read.Inventory
	settings  *infrastructure.Settings
	entries   []applicationEntry // of all applications, sorted by name in lower case
	response  *encodedResponse
	parts     []applicationPart // of the response
}

type applicationEntry struct {
	application *read.Application
	lower       string // its name
	json        []byte // empty if its accounts hide all of it
}

// applicationPart is a part of the list that is compressed on its own.
type applicationPart struct {
	first      string // name of its first application
	body       []byte
	compressed []byte
}

func (c *applicationCache) get(inventory *read.Inventory, settings *infrastructure.Settings) (*applicationList, error) {
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
func newApplicationList(inventory *read.Inventory, settings *infrastructure.Settings,
	previous *applicationList) (*applicationList, error) {
	if previous == nil || !previous.settings.SameViews(settings) {
		previous = &applicationList{inventory: &read.Inventory{}}
	}
	list := &applicationList{inventory: inventory, settings: settings, entries: previous.sortedEntries(inventory)}
	for i := range list.entries {
		entry := &list.entries[i]
		if application := inventory.Application(entry.application.Name); entry.json == nil || entry.application != application {
			*entry = applicationEntry{application, entry.lower, encodeApplication(application, settings)}
		}
	}
	body, parts := list.join()
	return list, list.finish(body, parts, previous)
}

// sortedEntries returns an entry for each application of an inventory, sorted. They are those of the
// list if it has them, which may show an older state, or else have no JSON.
func (l *applicationList) sortedEntries(inventory *read.Inventory) []applicationEntry {
	var added []applicationEntry
	removed := map[string]bool{}
	diffNames(l.inventory.Applications(), inventory.Applications(), func(name string) {
		added = append(added, applicationEntry{application: inventory.Application(name), lower: strings.ToLower(name)})
	}, func(name string) { removed[name] = true })
	slices.SortFunc(added, compareEntries)
	entries := make([]applicationEntry, 0, len(inventory.Applications()))
	for _, entry := range l.entries {
		for len(added) > 0 && compareEntries(added[0], entry) < 0 {
			entries, added = append(entries, added[0]), added[1:]
		}
		if len(removed) == 0 || !removed[entry.application.Name] {
			entries = append(entries, entry)
		}
	}
	return append(entries, added...)
}

// diffNames calls added and removed for the names in which two sorted lists differ. An inventory keeps
// its list while no application appears or disappears.
func diffNames(before, after []string, added, removed func(name string)) {
	if len(before) == len(after) && (len(before) == 0 || &before[0] == &after[0]) {
		return
	}
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(before) == 0 || len(after) > 0 && after[0] < before[0]:
			added(after[0])
			after = after[1:]
		case len(after) == 0 || before[0] < after[0]:
			removed(before[0])
			before = before[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
}

// compareEntries orders like Clouddriver does. Names that differ in case only are ordered by their
// bytes.
func compareEntries(x, y applicationEntry) int {
	return cmp.Or(strings.Compare(x.lower, y.lower), strings.Compare(x.application.Name, y.application.Name))
}

// applicationsPerPart is how many applications a part has on average: about 50 KB.
const applicationsPerPart = 256

// startsPart reports whether a part begins with an application. Names decide that, so that a new
// application changes only its own part.
func startsPart(name string) bool { return xxhash.Sum64String(name)%applicationsPerPart == 0 }

// join returns the body of the response, and its parts, which are not compressed yet. The entries refer
// to the body.
func (l *applicationList) join() (body []byte, parts []applicationPart) {
	size := len("[]\n")
	for i := range l.entries {
		size += len(l.entries[i].json) + len(",")
	}
	body = append(make([]byte, 0, size), '[')
	start := 0
	first := ""
	isFirst := true
	for i := range l.entries {
		entry := &l.entries[i]
		if len(entry.json) == 0 {
			continue
		}
		if startsPart(entry.application.Name) {
			parts = append(parts, applicationPart{first: first, body: body[start:len(body):len(body)]})
			start, first = len(body), entry.application.Name
		}
		if !isFirst {
			body = append(body, ',')
		}
		isFirst = false
		body = append(body, entry.json...)
		entry.json = body[len(body)-len(entry.json) : len(body) : len(body)] // releases the body of the list before
	}
	body = append(body, "]\n"...)
	return body, append(parts, applicationPart{first: first, body: body[start:]})
}

// finish compresses those parts that differ from the previous list's, and makes the response.
func (l *applicationList) finish(body []byte, parts []applicationPart, previous *applicationList) error {
	known := make(map[string]*applicationPart, len(previous.parts))
	for i := range previous.parts {
		known[previous.parts[i].first] = &previous.parts[i]
	}
	l.response, l.parts = &encodedResponse{body: body, tag: xxhash.Sum64(body)}, parts
	if len(body) < minCompressed {
		return nil
	}
	compressed := make([][]byte, len(parts))
	for i := range parts {
		part := &parts[i]
		if k := known[part.first]; k != nil && k.compressed != nil && bytes.Equal(k.body, part.body) {
			part.compressed = k.compressed
		} else {
			var err error
			if part.compressed, err = deflate(part.body); err != nil {
				return err
			}
		}
		compressed[i] = part.compressed
	}
	l.response.compressed = joinGzip(body, compressed...)
	return nil
}

// filter encodes the applications that a caller may read.
func (l *applicationList) filter(readable func(application string) bool) []byte {
	var e encoder
	e.Array(func() {
		for i := range l.entries {
			if entry := &l.entries[i]; len(entry.json) > 0 && readable(entry.application.Name) {
				e.Separate()
				e.B = append(e.B, entry.json...)
			}
		}
	})
	return e.B
}

// encodeApplication encodes an application. It is empty, but not nil, if its accounts hide all of
// it.
func encodeApplication(application *read.Application, settings *infrastructure.Settings) []byte {
	e := encoder{jsonwriter.Writer{B: []byte{}}}
	if accounts := visibleClusters(application, settings); len(accounts) > 0 {
		e.application(application.Name, accounts)
	}
	return e.B
}

// application appends an application like Clouddriver's KubernetesApplication.
func (e *encoder) application(name string, accounts []accountClusters) {
	e.Object(func() {
		e.Text("name", name)
		e.Name("attributes")
		e.Object(func() { e.Text("name", name) })
		e.Name("clusterNames")
		e.Object(func() {
			for _, account := range accounts {
				e.Member(string(account.name))
				e.Texts(account.clusters)
			}
		})
	})
}
