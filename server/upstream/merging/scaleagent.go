package merging

import (
	"errors"
	"fmt"
	"strconv"
)

// Servers merges two lists of servers: this server's, then those that only the upstream Clouddriver lists. Both look for Services with the
// same prefix, so both may list one server.
func Servers(m *Merge) error {
	var all [][]byte
	seen := map[string]bool{}
	for _, from := range []origin{fromLocal, fromTheirs} {
		err := m.eachElement(m.part(from), func(element []byte) error {
			id, err := m.StringMember(element, "id")
			if err == nil && (id == "" || !seen[id]) {
				seen[id] = true
				all = append(all, element)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	m.addList(all)
	return nil
}

// AccountPage merges two pages of accounts: the members items, page, limit and total of GET /armory/accounts.
func AccountPage(m *Merge) error {
	var all [][]byte
	total, first := 0, []byte(nil)
	for _, from := range []origin{fromLocal, fromTheirs} {
		page := m.part(from)
		if page == nil {
			continue
		}
		if first == nil {
			first = page
		}
		items, err := m.Member(page, "items")
		if err != nil {
			return err
		}
		if len(items) == 0 || items[0] != '[' {
			return errors.New("read a page of accounts: it has no items")
		}
		kept := len(all)
		if err := m.eachElement(items, func(item []byte) error {
			name, isNamed, err := m.Account(item, "name")
			if err == nil && !(isNamed && m.drops(from, name)) {
				all = append(all, item)
			}
			return err
		}); err != nil {
			return err
		}
		number, err := m.Member(page, "total")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(number))
		if err != nil || n < len(all)-kept {
			return fmt.Errorf("read a page of accounts: its total %.20q is not their number", number)
		}
		total += n
	}
	if first == nil {
		m.IsNothing = true
		return nil
	}
	m.Out = append(m.Out, `{"items":`...)
	m.addList(all)
	for _, name := range []string{"page", "limit"} {
		value, err := m.Member(first, name)
		if err != nil {
			return err
		}
		if value != nil {
			m.Out = append(append(m.Out, `,"`+name+`":`...), value...)
		}
	}
	m.Out = append(strconv.AppendInt(append(m.Out, `,"total":`...), int64(total), 10), '}')
	return nil
}
