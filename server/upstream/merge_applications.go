package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// mergeApplications merges two lists of applications. An application that both know becomes one
// entry, which also merges the entries that Clouddriver writes for each provider.
func mergeApplications(m *merger) error {
	entries := map[string]*application{}
	order := []*application{}
	add := func(raw []byte, isTheirs bool) error {
		a, err := m.readApplication(raw, isTheirs)
		if err != nil || a == nil {
			return err
		}
		known := entries[a.Name]
		if known == nil {
			entries[a.Name] = a
			order = append(order, a)
			return nil
		}
		return known.add(a)
	}
	if err := m.eachElement(m.own, func(raw []byte) error { return add(raw, false) }); err != nil {
		return err
	}
	if err := m.eachElement(m.theirs, func(raw []byte) error { return add(raw, true) }); err != nil {
		return err
	}
	slices.SortFunc(order, func(a, b *application) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.Name, b.Name))
	})
	m.out = append(m.out, '[')
	for _, a := range order {
		if err := m.addApplication(a, "clusterNames"); err != nil {
			return err
		}
	}
	m.out = append(m.out, ']')
	return nil
}

// mergeApplication merges two answers about one application.
func mergeApplication(m *merger) error {
	merged, err := m.readApplication(m.theirs, true)
	if err != nil {
		return err
	}
	if m.own != nil {
		own, err := m.readApplication(m.own, false)
		if err != nil {
			return err
		}
		if merged != nil {
			if err := own.add(merged); err != nil {
				return err
			}
		}
		merged = own
	}
	if merged == nil {
		m.isNothing = true
		return nil
	}
	return m.addApplication(merged, "clusters")
}

// readApplication reads an entry. Of the upstream Clouddriver's it removes the clusters of agents'
// accounts. It returns nil for an application whose clusters are all of these accounts, because the
// other Clouddriver may know them from before.
func (m *merger) readApplication(raw []byte, isTheirs bool) (*application, error) {
	if err := m.count(bytes.Count(raw, []byte(":"))); err != nil { // at least the members of its maps
		return nil, err
	}
	a := &application{}
	if err := json.Unmarshal(raw, a); err != nil {
		return nil, fmt.Errorf("read an application: %w", err)
	}
	if a.Name == "" {
		return nil, fmt.Errorf("read an application: it has no name")
	}
	if !isTheirs {
		return a, nil
	}
	before := len(a.ClusterNames) + len(a.Clusters)
	m.dropOurs(a.ClusterNames)
	m.dropOurs(a.Clusters)
	if before > 0 && len(a.ClusterNames)+len(a.Clusters) == 0 {
		return nil, nil
	}
	return a, nil
}

func (m *merger) dropOurs(byAccount map[string]json.RawMessage) {
	for account := range byAccount {
		if m.accounts.has(account) {
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
		if err := json.Unmarshal(raw, &list); err != nil {
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
func (m *merger) addApplication(a *application, clustersKey string) error {
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
	m.out = append(append(m.out, `"name":`...), name...)
	m.out = append(append(m.out, `,"attributes":`...), attributes...)
	m.out = append(append(m.out, `,"`+clustersKey+`":`...), byAccount...)
	m.out = append(m.out, '}')
	return nil
}

func orEmpty(m map[string]json.RawMessage) map[string]json.RawMessage {
	if m == nil {
		return map[string]json.RawMessage{}
	}
	return m
}
