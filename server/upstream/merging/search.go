package merging

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// resultSet is the one element of a search answer. The members come in Clouddriver's order.
type resultSet struct {
	TotalMatches int64             `json:"totalMatches"`
	PageNumber   int64             `json:"pageNumber"`
	PageSize     int64             `json:"pageSize"`
	Platform     json.RawMessage   `json:"platform,omitempty"`
	Query        string            `json:"query"`
	Results      []json.RawMessage `json:"results"`
}

// Search merges two pages of search results. Results without an account, for example
// applications, appear once if both sides have them.
func Search(m *Merge) error {
	var merged resultSet
	seen := map[uint64]bool{}
	isFirst := true
	for _, from := range []origin{fromLocal, fromTheirs} {
		if m.part(from) == nil {
			continue
		}
		set, err := m.readResultSet(m.part(from))
		if err != nil {
			return err
		}
		if isFirst {
			merged = set
			merged.TotalMatches, merged.Results = 0, []json.RawMessage{}
			isFirst = false
		}
		merged.TotalMatches += set.TotalMatches
		for _, result := range set.Results {
			drops, err := m.dropsObject(from, result)
			if err != nil {
				return err
			}
			identity, err := m.identityOf(result)
			if err != nil {
				return err
			}
			if drops || from == fromTheirs && seen[identity] {
				merged.TotalMatches--
				continue
			} else if from == fromLocal {
				seen[identity] = true
			}
			merged.Results = append(merged.Results, result)
		}
	}
	merged.TotalMatches = max(merged.TotalMatches, int64(len(merged.Results)))
	return m.addResultSet(merged)
}

// identityOf returns a digest of what identifies a result. Applications are the same on both sides, although their other members
// may differ.
func (m *Merge) identityOf(result []byte) (uint64, error) {
	kind, err := m.StringMember(result, "type")
	if err != nil || kind != "applications" {
		return xxhash.Sum64(result), err
	}
	application, err := m.StringMember(result, "application")
	return xxhash.Sum64String(application), err
}

// readResultSet reads an answer, which has one element for all providers. Clouddriver's list has
// never had more.
func (m *Merge) readResultSet(body []byte) (resultSet, error) {
	var set resultSet
	count := 0
	err := m.eachElement(body, func(element []byte) error {
		if count++; count > 1 {
			return errors.New("got several sets of search results, want one")
		}
		return m.readResults(element, &set)
	})
	return set, err
}

// readResults reads one set. The number of results is checked before they are kept. Commas are at
// least as many, whichever member they are in: a name can be there several times.
func (m *Merge) readResults(element []byte, set *resultSet) error {
	if err := m.countCommas(element); err != nil {
		return err
	}
	if err := exactjson.Unmarshal(element, set, exactjson.Limits{Bytes: exactjson.Unlimited}); err != nil {
		return fmt.Errorf("read search results: %w", err)
	}
	return nil
}

func (m *Merge) addResultSet(set resultSet) error {
	raw, err := json.Marshal([]resultSet{set})
	if err != nil {
		return fmt.Errorf("write search results: %w", err)
	}
	m.Out = append(m.Out, raw...)
	return nil
}
