package upstream

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// mergeArtifactAccounts merges two lists of artifact accounts. Of an account that both have, this
// server's entry stays, and the upstream Clouddriver's keeps the types that this server lacks: the
// same rule decides who fetches an artifact.
func mergeArtifactAccounts(m *merger) error {
	var all [][]byte
	own := map[string][]string{}
	err := m.eachElement(m.own, func(raw []byte) error {
		all = append(all, raw)
		a, err := m.readArtifactAccount(raw)
		own[a.Name] = append(own[a.Name], a.Types...)
		return err
	})
	if err != nil {
		return err
	}
	err = m.eachElement(m.theirs, func(raw []byte) error {
		rest, err := m.withoutTypes(raw, own)
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

func (m *merger) readArtifactAccount(raw []byte) (artifactAccount, error) {
	var a artifactAccount
	if err := m.countCommas(raw); err != nil {
		return a, err
	}
	if err := exactjson.Unmarshal(raw, &a, exactjson.Limits{}); err != nil {
		return a, fmt.Errorf("read an artifact account: %w", err)
	}
	return a, nil
}

// withoutTypes returns an entry without the types that own has under the same name; nil if no type
// is left.
func (m *merger) withoutTypes(raw []byte, own map[string][]string) ([]byte, error) {
	a, err := m.readArtifactAccount(raw)
	if err != nil {
		return nil, err
	}
	ownTypes, isKnown := own[a.Name]
	if !isKnown {
		return raw, nil
	}
	rest := slices.DeleteFunc(a.Types, func(t string) bool { return slices.Contains(ownTypes, t) })
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
