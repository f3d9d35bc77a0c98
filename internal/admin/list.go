package admin

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// TotalHeader is the number of items that match the filters of a request, on all pages.
const TotalHeader = "X-Total-Count"

// Query are the parameters of a list: filters by their names, limit and offset.
type Query struct {
	filters       map[string]string
	limit, offset int // no limit if 0
}

// ParseQuery parses the query of a request. Other parameters than the given filters, limit and offset
// are errors, because an ignored filter would show too much.
func ParseQuery(values url.Values, filters ...string) (Query, error) {
	q := Query{filters: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(values)) { // the same error each time
		all := values[name]
		var err error
		switch {
		case len(all) > 1:
			return q, fmt.Errorf("the parameter %s is set %d times", name, len(all))
		case name == "limit":
			q.limit, err = parseCount(name, all[0])
		case name == "offset":
			q.offset, err = parseCount(name, all[0])
		case slices.Contains(filters, name):
			q.filters[name] = all[0]
		default:
			return q, fmt.Errorf("there is no parameter %.100q: use %s, limit or offset", name, strings.Join(filters, ", "))
		}
		if err != nil {
			return q, err
		}
	}
	return q, nil
}

func parseCount(name, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("the parameter %s must be a number from 0, got %.100q", name, text)
	}
	return n, nil
}

// Filter returns the value of a filter; "" if it is not set.
func (q Query) Filter(name string) string { return q.filters[name] }

// Matches reports whether a value passes a filter, ignoring case.
func (q Query) Matches(filter, value string) bool {
	wanted, set := q.filters[filter]
	return !set || strings.EqualFold(wanted, value)
}

// WriteList writes the items of a list that are on the requested page.
func WriteList[T any](w http.ResponseWriter, q Query, items []T) {
	w.Header().Set(TotalHeader, strconv.Itoa(len(items)))
	page := items[min(q.offset, len(items)):]
	if q.limit > 0 {
		page = page[:min(q.limit, len(page))]
	}
	WriteJSON(w, http.StatusOK, append([]T{}, page...)) // never null
}
