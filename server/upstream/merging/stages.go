package merging

// Stages merges two lists of stages: this server's, then those that only the upstream Clouddriver has.
func Stages(m *Merge) error {
	var all [][]byte
	seen := map[string]bool{}
	for _, from := range []origin{fromLocal, fromTheirs} {
		err := m.eachElement(m.part(from), func(element []byte) error {
			name, err := m.StringMember(element, "name")
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
