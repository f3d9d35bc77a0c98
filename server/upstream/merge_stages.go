package upstream

// mergeStages merges two lists of stages: this server's, then those that only the upstream Clouddriver has.
func mergeStages(m *merger) error {
	var all [][]byte
	seen := map[string]bool{}
	for _, from := range []origin{fromOwn, fromTheirs} {
		err := m.eachElement(m.part(from), func(element []byte) error {
			name, err := m.stringMember(element, "name")
			if err == nil && !seen[name] {
				seen[name] = true
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
