package merging

import (
	"fmt"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// projectCluster is what identifies an entry of projects/{project}/clusters. The order is that of
// the project's configuration.
type projectCluster struct {
	Account string `json:"account"`
	Stack   string `json:"stack"`
	Detail  string `json:"detail"`
}

// eachProjectCluster calls do with each entry of an answer.
func (m *Merge) eachProjectCluster(body []byte, do func(c projectCluster, raw []byte)) error {
	return m.eachElement(body, func(raw []byte) error {
		var c projectCluster
		if err := exactjson.Unmarshal(raw, &c, exactjson.Limits{}); err != nil {
			return fmt.Errorf("read a cluster of a project: %w", err)
		}
		do(c, raw)
		return nil
	})
}

// Project merges the clusters of a project. Each side has an entry for every cluster in the
// project's configuration, also for those of the other side; those are empty.
func Project(m *Merge) error {
	var order []projectCluster
	entries := map[projectCluster][]byte{}
	put := func(c projectCluster, raw []byte) {
		if _, isKnown := entries[c]; !isKnown {
			order = append(order, c)
		}
		entries[c] = raw
	}
	for _, from := range []origin{fromLocal, fromTheirs} {
		err := m.eachProjectCluster(m.part(from), func(c projectCluster, raw []byte) {
			if !m.drops(from, c.Account) {
				put(c, raw)
			}
		})
		if err != nil {
			return err
		}
	}
	var all [][]byte
	for _, c := range order {
		all = append(all, entries[c])
	}
	m.addList(all)
	return nil
}
