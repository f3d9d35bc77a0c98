package upstream

import (
	"slices"
	"strings"
)

// accountKey is the member that names the account in most answers.
const accountKey = "account"

// listRule says how two lists of objects become one.
type listRule struct {
	account    string // the member that names the account; empty if elements have none
	key        string // the member that identifies elements; empty if all are kept
	sortByName bool   // by the lower-cased name, as Clouddriver does
}

// mergeList returns a merge of two lists: this server's elements, then the upstream Clouddriver's
// without those of agents' accounts.
func mergeList(rule listRule) mergeFunc {
	return func(m *merger) error {
		var all [][]byte
		seen := map[string]bool{}
		err := m.eachElement(m.own, func(element []byte) error {
			all = append(all, element)
			return rule.see(m, seen, element)
		})
		if err != nil {
			return err
		}
		err = m.eachElement(m.theirs, func(element []byte) error {
			keep, err := rule.keeps(m, seen, element)
			if keep {
				all = append(all, element)
			}
			return err
		})
		if err != nil {
			return err
		}
		return m.addList(all, rule.sortByName)
	}
}

// see remembers the key of an element.
func (l listRule) see(m *merger, seen map[string]bool, element []byte) error {
	if l.key == "" {
		return nil
	}
	key, err := m.stringMember(element, l.key)
	seen[key] = true
	return err
}

// keeps reports whether an element of the upstream Clouddriver belongs to the merged list.
func (l listRule) keeps(m *merger, seen map[string]bool, element []byte) (bool, error) {
	if l.account != "" {
		isOurs, err := m.hasOur(element, l.account)
		return !isOurs, err
	}
	if l.key == "" {
		return true, nil
	}
	key, err := m.stringMember(element, l.key)
	return !seen[key], err
}

// addList appends a list.
func (m *merger) addList(all [][]byte, sortByName bool) error {
	if sortByName {
		if err := m.sortByLowerName(all); err != nil {
			return err
		}
	}
	m.out = append(m.out, '[')
	for _, element := range all {
		m.addValue(element)
	}
	m.out = append(m.out, ']')
	return nil
}

// sortByLowerName sorts objects by their lower-cased names. Equal names keep their order.
func (m *merger) sortByLowerName(all [][]byte) error {
	type named struct {
		name string
		raw  []byte
	}
	list := make([]named, 0, len(all))
	for _, raw := range all {
		name, err := m.stringMember(raw, "name")
		if err != nil {
			return err
		}
		list = append(list, named{strings.ToLower(name), raw})
	}
	slices.SortStableFunc(list, func(a, b named) int { return strings.Compare(a.name, b.name) })
	for i, element := range list {
		all[i] = element.raw
	}
	return nil
}

// mergeAccountMap merges two objects whose members are named after accounts.
func mergeAccountMap(m *merger) error {
	m.out = append(m.out, '{')
	if err := m.eachMember(m.own, m.addMember); err != nil {
		return err
	}
	err := m.eachMember(m.theirs, func(account string, value []byte) error {
		if m.accounts.hides(account) {
			return nil
		}
		return m.addMember(account, value)
	})
	m.out = append(m.out, '}')
	return err
}
