package merging

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// ArtifactAccount is an entry of artifacts/credentials.
type ArtifactAccount struct {
	Name  string   `json:"name"`
	Types []string `json:"types"`
}

// ArtifactAccounts merges two lists of artifact accounts. Of an account that both have, this
// server's entry stays, and the upstream Clouddriver's keeps the types that this server lacks: the
// same rule decides who fetches an artifact. It holds for two entries of the upstream Clouddriver too:
// the first one that has a name and a type serves it.
func ArtifactAccounts(m *Merge) error {
	var all [][]byte
	shown := map[string][]string{} // types by account
	err := m.eachElement(m.Local, func(raw []byte) error {
		all = append(all, raw)
		a, err := m.readArtifactAccount(raw)
		shown[a.Name] = append(shown[a.Name], a.Types...)
		return err
	})
	if err != nil {
		return err
	}
	err = m.eachElement(m.Theirs, func(raw []byte) error {
		rest, err := m.withoutTypes(raw, shown)
		if rest != nil {
			all = append(all, rest)
		}
		return err
	})
	if err != nil {
		return err
	}
	m.addList(all)
	return nil
}

func (m *Merge) readArtifactAccount(raw []byte) (ArtifactAccount, error) {
	var a ArtifactAccount
	if err := m.countCommas(raw); err != nil {
		return a, err
	}
	if err := exactjson.Unmarshal(raw, &a, exactjson.Limits{}); err != nil {
		return a, fmt.Errorf("read an artifact account: %w", err)
	}
	return a, nil
}

// withoutTypes returns an entry without the types that shown has under the same name, and adds the
// rest to shown; nil if no type is left.
func (m *Merge) withoutTypes(raw []byte, shown map[string][]string) ([]byte, error) {
	a, err := m.readArtifactAccount(raw)
	if err != nil {
		return nil, err
	}
	types, isShown := shown[a.Name]
	rest := slices.DeleteFunc(slices.Clone(a.Types), func(t string) bool { return slices.Contains(types, t) })
	shown[a.Name] = append(types, rest...)
	switch {
	case isShown && len(rest) == 0:
		return nil, nil
	case len(rest) == len(a.Types):
		return raw, nil
	}
	var entry map[string]json.RawMessage
	if err := exactjson.Unmarshal(raw, &entry, exactjson.Limits{}); err != nil {
		return nil, fmt.Errorf("read an artifact account: %w", err)
	}
	if entry["types"], err = json.Marshal(rest); err != nil {
		return nil, fmt.Errorf("write an artifact account: %w", err)
	}
	changed, err := json.Marshal(entry)
	return changed, err
}
