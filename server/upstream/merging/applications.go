package merging

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// application is an entry of applications, or the answer of applications/{app}.
type application struct {
	Name         string                     `json:"name"`
	Attributes   map[string]json.RawMessage `json:"attributes"`
	ClusterNames map[string]json.RawMessage `json:"clusterNames,omitempty"`
	Clusters     map[string]json.RawMessage `json:"clusters,omitempty"`
}

// cloudProviders is the attribute that lists the providers of an application, separated by commas.
const cloudProviders = "cloudProviders"

// applicationEntry is an entry of the merged list. Most entries stay as they are, without being
// decoded.
type applicationEntry struct {
	name, lowerName string
	raw             []byte
	decoded         *application // nil if the entry stays as it is
}

// applicationList is the list while it is merged.
type applicationList struct {
	*Merge
	byName map[string]*applicationEntry
	order  []*applicationEntry
}

// Applications merges two lists of applications. An application that both know becomes one
// entry, which also merges the entries that Clouddriver writes for each provider.
func Applications(m *Merge) error {
	l := &applicationList{Merge: m, byName: map[string]*applicationEntry{}}
	for _, from := range []origin{fromLocal, fromTheirs} {
		if err := m.eachElement(m.part(from), func(raw []byte) error { return l.addFrom(from, raw) }); err != nil {
			return err
		}
	}
	slices.SortFunc(l.order, func(a, b *applicationEntry) int {
		return cmp.Or(strings.Compare(a.lowerName, b.lowerName), strings.Compare(a.name, b.name))
	})
	m.Out = append(m.Out, '[')
	for _, entry := range l.order {
		if entry.decoded == nil {
			m.addValue(entry.raw)
			continue
		}
		if err := m.addApplication(entry.decoded, "clusterNames"); err != nil {
			return err
		}
	}
	m.Out = append(m.Out, ']')
	return nil
}

// addFrom adds an entry of one side without the accounts for which the other side answers.
func (l *applicationList) addFrom(from origin, raw []byte) error {
	name, err := l.StringMember(raw, "name")
	if err != nil {
		return err
	}
	entry := &applicationEntry{name: name, raw: raw}
	drops, err := l.dropsClusters(from, raw)
	if err != nil {
		return err
	}
	if drops {
		entry.decoded, err = l.readApplication(from, raw)
		if err != nil || entry.decoded == nil {
			return err
		}
	}
	return l.add(entry)
}

// dropsClusters reports whether an entry has clusters in accounts for which the other side answers.
func (l *applicationList) dropsClusters(from origin, raw []byte) (drops bool, err error) {
	if from == fromLocal && !l.FiltersLocal {
		return false, nil
	}
	clusters, err := l.Member(raw, "clusterNames")
	if err != nil || len(clusters) == 0 || clusters[0] != '{' {
		return false, err
	}
	err = l.EachMember(clusters, func(account string, _ []byte) error {
		drops = drops || l.drops(from, account)
		return nil
	})
	return drops, err
}

// add adds an entry, or merges it into that of the same name.
func (l *applicationList) add(entry *applicationEntry) error {
	if entry.name == "" {
		return errors.New("read an application: it has no name")
	}
	known := l.byName[entry.name]
	if known == nil {
		entry.lowerName = strings.ToLower(entry.name)
		l.byName[entry.name] = entry
		l.order = append(l.order, entry)
		return nil
	}
	for _, e := range []*applicationEntry{known, entry} {
		if e.decoded != nil {
			continue
		}
		a, err := l.decodeApplication(e.raw)
		if err != nil {
			return err
		}
		e.decoded = a
	}
	return known.decoded.add(entry.decoded)
}

// Application merges two answers about one application.
func Application(m *Merge) error {
	var merged *application
	for _, from := range []origin{fromLocal, fromTheirs} {
		if m.part(from) == nil {
			continue
		}
		a, err := m.readApplication(from, m.part(from))
		switch {
		case err != nil:
			return err
		case a == nil:
		case merged == nil:
			merged = a
		default:
			if err := merged.add(a); err != nil {
				return err
			}
		}
	}
	if merged == nil {
		m.IsNothing = true
		return nil
	}
	return m.addApplication(merged, "clusters")
}

// readApplication reads an entry of one side without the clusters of accounts for which the other side answers. It returns nil for
// an application whose clusters are all of these accounts.
func (m *Merge) readApplication(from origin, raw []byte) (*application, error) {
	a, err := m.decodeApplication(raw)
	if err != nil {
		return nil, err
	}
	before := len(a.ClusterNames) + len(a.Clusters)
	m.dropAccounts(from, a.ClusterNames)
	m.dropAccounts(from, a.Clusters)
	if before > 0 && len(a.ClusterNames)+len(a.Clusters) == 0 {
		return nil, nil
	}
	return a, nil
}

func (m *Merge) decodeApplication(raw []byte) (*application, error) {
	if err := m.Count(bytes.Count(raw, []byte(":"))); err != nil { // at least the members of its maps
		return nil, err
	}
	a := &application{}
	if err := exactjson.Unmarshal(raw, a, exactjson.Limits{}); err != nil {
		return nil, fmt.Errorf("read an application: %w", err)
	}
	if a.Name == "" {
		return nil, errors.New("read an application: it has no name")
	}
	return a, nil
}

func (m *Merge) dropAccounts(from origin, byAccount map[string]json.RawMessage) {
	for account := range byAccount {
		if m.drops(from, account) {
			delete(byAccount, account)
		}
	}
}

// add adds what another entry of the same application has.
func (a *application) add(other *application) error {
	providers, err := joinProviders(a.Attributes[cloudProviders], other.Attributes[cloudProviders])
	if err != nil {
		return err
	}
	a.Attributes = union(a.Attributes, other.Attributes)
	if providers != nil {
		a.Attributes[cloudProviders] = providers
	}
	a.ClusterNames = union(a.ClusterNames, other.ClusterNames)
	a.Clusters = union(a.Clusters, other.Clusters)
	return nil
}

// union adds the members of b that a lacks to a.
func union(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	if a == nil {
		return b
	}
	for name, value := range b {
		if _, ok := a[name]; !ok {
			a[name] = value
		}
	}
	return a
}

// joinProviders returns the sorted union of two lists of providers, or nil if both are missing.
func joinProviders(lists ...json.RawMessage) (json.RawMessage, error) {
	var all []string
	for _, raw := range lists {
		var list string
		if raw == nil {
			continue
		}
		if err := exactjson.Unmarshal(raw, &list, exactjson.Limits{}); err != nil {
			return nil, fmt.Errorf("read the providers of an application: %w", err)
		}
		all = append(all, strings.Split(list, ",")...)
	}
	if all == nil {
		return nil, nil
	}
	slices.Sort(all)
	joined, err := json.Marshal(strings.Join(slices.Compact(all), ","))
	return joined, err
}

// addApplication appends an application, with the member for its clusters even if it has none.
func (m *Merge) addApplication(a *application, clustersKey string) error {
	clusters := a.ClusterNames
	if clustersKey == "clusters" {
		clusters = a.Clusters
	}
	attributes, err := json.Marshal(orEmpty(a.Attributes))
	if err != nil {
		return fmt.Errorf("write the attributes of an application: %w", err)
	}
	byAccount, err := json.Marshal(orEmpty(clusters))
	if err != nil {
		return fmt.Errorf("write the clusters of an application: %w", err)
	}
	name, err := json.Marshal(a.Name)
	if err != nil {
		return fmt.Errorf("write the name of an application: %w", err)
	}
	m.addValue([]byte("{"))
	m.Out = append(append(m.Out, `"name":`...), name...)
	m.Out = append(append(m.Out, `,"attributes":`...), attributes...)
	m.Out = append(append(m.Out, `,"`+clustersKey+`":`...), byAccount...)
	m.Out = append(m.Out, '}')
	return nil
}

func orEmpty(m map[string]json.RawMessage) map[string]json.RawMessage {
	if m == nil {
		return map[string]json.RawMessage{}
	}
	return m
}
