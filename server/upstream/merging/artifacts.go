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
// same rule decides who fetches an artifact.
func ArtifactAccounts(m *Merge) error {
	var all [][]byte
	local := map[string][]string{}
	err := m.eachElement(m.Local, func(raw []byte) error {
		all = append(all, raw)
		a, err := m.readArtifactAccount(raw)
		local[a.Name] = append(local[a.Name], a.Types...)
		return err
	})
	if err != nil {
		return err
	}
	err = m.eachElement(m.Theirs, func(raw []byte) error {
		rest, err := m.withoutTypes(raw, local)
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

// withoutTypes returns an entry without the types that local has under the same name; nil if no type
// is left.
func (m *Merge) withoutTypes(raw []byte, local map[string][]string) ([]byte, error) {
	a, err := m.readArtifactAccount(raw)
	if err != nil {
		return nil, err
	}
	localTypes, isKnown := local[a.Name]
	if !isKnown {
		return raw, nil
	}
	rest := slices.DeleteFunc(a.Types, func(t string) bool { return slices.Contains(localTypes, t) })
	if len(rest) == 0 {
		return nil, nil
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
