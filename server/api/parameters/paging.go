package parameters

import (
	"encoding/base64"
	"encoding/json"
	"net/url"

	"github.com/vedette-io/vedette"
)

// Paging returns the parameters limit and cursor. The parts of the cursor are nil on the first
// page.
func Paging(values url.Values, parts int) (limit int, after []string, err error) {
	limit, err = Limit(values)
	if err != nil {
		return 0, nil, err
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	cursor, err := Single(values, "cursor")
	if err != nil || cursor == "" {
		return limit, nil, err
	}
	after, err = parseCursor(cursor, parts)
	return limit, after, err
}

// NewCursor returns the cursor of the page after the item that the parts identify. Its format is
// opaque and may change with any version.
func NewCursor(parts ...string) string {
	text, _ := json.Marshal(parts) // strings always marshal
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(cursor string, n int) ([]string, error) {
	var parts []string
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	if err != nil || len(parts) != n {
		return nil, vedette.Errorf(vedette.Invalid, "the cursor %.100q is invalid: request the first page again, without a cursor", cursor)
	}
	return parts, nil
}
