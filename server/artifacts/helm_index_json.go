package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// scanJSONIndex is scanIndex for JSON.
func scanJSONIndex(r io.Reader, visit func(indexEntry) error) error {
	decoder := json.NewDecoder(r)
	if err := skipToJSONEntries(decoder); err != nil {
		return err
	}
	for decoder.More() {
		name, err := nextToken(decoder)
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		text, _ := name.(string) // the keys of an object are strings
		err = visit(indexEntry{text, func() (charts []chart, err error) { return charts, json.Unmarshal(raw, &charts) }})
		if err != nil {
			return err
		}
	}
	_, err := nextToken(decoder)
	return err
}

func nextToken(decoder *json.Decoder) (json.Token, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	return token, nil
}

func skipToJSONEntries(decoder *json.Decoder) error {
	if _, err := nextToken(decoder); err != nil {
		return err
	}
	for decoder.More() {
		key, err := nextToken(decoder)
		if err != nil {
			return err
		}
		if key == "entries" {
			start, err := nextToken(decoder)
			if err == nil && start != json.Delim('{') {
				err = errors.New("its entries are not an object")
			}
			return err
		}
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			return err
		}
	}
	return errors.New("it is not an index: it has no entries")
}
