package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// scanJSONIndex is scanIndex for JSON.
func scanJSONIndex(r io.Reader, visit func(indexEntry) error) error {
	limited := &entryReader{from: r, left: maxEntryBytes}
	decoder := json.NewDecoder(limited)
	if err := skipToJSONEntries(decoder, limited); err != nil {
		return err
	}
	for decoder.More() {
		limited.left = maxEntryBytes
		name, err := nextToken(decoder)
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		text, _ := name.(string) // the keys of an object are strings
		err = visit(indexEntry{text, func() ([]chart, error) { return parseJSONCharts(raw) }})
		if err != nil {
			return err
		}
	}
	_, err := nextToken(decoder)
	return err
}

// entryReader fails after so many bytes, because a decoder keeps a value in memory until it ends.
type entryReader struct {
	from io.Reader
	left int
}

// Read implements io.Reader.
func (r *entryReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errEntryTooLarge
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

func parseJSONCharts(raw []byte) (charts []chart, err error) {
	if err := checkValues(raw); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &charts); err != nil {
		return nil, fmt.Errorf("parse its versions: %w", err)
	}
	return charts, nil
}

func nextToken(decoder *json.Decoder) (json.Token, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	return token, nil
}

func skipToJSONEntries(decoder *json.Decoder, limited *entryReader) error {
	if _, err := nextToken(decoder); err != nil {
		return err
	}
	for decoder.More() {
		limited.left = maxEntryBytes
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
