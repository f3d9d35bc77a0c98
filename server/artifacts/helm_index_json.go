package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/yamlcount"
)

func scanJSONIndex(r io.Reader, paid *entryReader, visit func(indexEntry) error) error {
	limited := &limitedEntry{from: r, paid: paid, left: maxEntryBytes}
	decoder := json.NewDecoder(limited)
	if err := skipToJSONEntries(decoder, limited); err != nil {
		return err
	}
	for decoder.More() {
		limited.next()
		name, err := nextToken(decoder)
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		text, _ := name.(string) // the keys of an object are strings
		err = visit(indexEntry{text, raw, func() ([]chart, error) { return parseJSONCharts(raw) }})
		if err != nil {
			return err
		}
	}
	_, err := nextToken(decoder)
	return err
}

// limitedEntry fails after so many bytes, because a decoder keeps a value in memory until it ends.
type limitedEntry struct {
	from io.Reader
	paid *entryReader
	left int
}

func (r *limitedEntry) next() {
	r.left = maxEntryBytes
	r.paid.next()
}

// Read implements io.Reader.
func (r *limitedEntry) Read(p []byte) (int, error) {
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
	if err := exactjson.Unmarshal(raw, &charts, exactjson.Limits{Bytes: maxEntryValues * yamlcount.NodeBytes}); err != nil {
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

func skipToJSONEntries(decoder *json.Decoder, limited *limitedEntry) error {
	if _, err := nextToken(decoder); err != nil {
		return err
	}
	for decoder.More() {
		limited.next()
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
