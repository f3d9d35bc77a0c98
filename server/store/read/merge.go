package read

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// The functions in this file merge what several databases answer, each of which has other accounts.

// PageLimit returns how many objects a page has at most.
func (q Query) PageLimit() int { return cmp.Or(q.Limit, sqldb.DefaultLimit) }

// MergePages merges the pages that databases answer to the same query into one with at most limit objects. What comes after the last object
// of a page that has a next one is left to the next page, because more of that database may come before it.
func MergePages(limit int, pages []Page) Page {
	merged, more := Page{Items: []Row{}}, false
	rest := make([][]Row, len(pages))
	for i := range pages {
		rest[i] = pages[i].Items
		more = more || pages[i].Next != ""
		if pages[i].Total < 0 || merged.Total < 0 {
			merged.Total = -1
		} else {
			merged.Total += pages[i].Total
		}
	}
	for len(merged.Items) < limit {
		first := -1
		for i := range rest {
			if len(rest[i]) > 0 && (first < 0 || rest[i][0].Account < rest[first][0].Account) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		merged.Items = append(merged.Items, rest[first][0])
		rest[first] = rest[first][1:]
		if len(rest[first]) == 0 && pages[first].Next != "" {
			break
		}
	}
	for i := range rest {
		more = more || len(rest[i]) > 0
	}
	if n := len(merged.Items); n > 0 && more {
		last := &merged.Items[n-1]
		merged.Next = position{account: string(last.Account), kind: last.Kind, namespace: last.Namespace, name: last.Name}.String()
	}
	return merged
}

// MergeFeeds merges feeds of accounts, in the order of Feeds.
func MergeFeeds(lists [][]FeedStatus) []FeedStatus {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b FeedStatus) int { return cmp.Compare(a.Account, b.Account) })
	return all
}

// MergeResources merges resources without duplicates, in the order of Resources.
func MergeResources(lists [][]vedette.Resource) []vedette.Resource {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b vedette.Resource) int {
		return cmp.Or(strings.Compare(a.Kind.Name, b.Kind.Name), strings.Compare(a.Kind.Group, b.Kind.Group),
			strings.Compare(a.Version, b.Version))
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(r vedette.Resource) bool {
		key := fmt.Sprintf("%q", []any{r.Kind.Name, r.Kind.Group, r.Version, r.Plural, r.Singular, r.ShortNames, r.Namespaced})
		isDuplicate := seen[key]
		seen[key] = true
		return isDuplicate
	})
}

// MergeAttributes joins rows, which are in no order, within the limit of one read.
func MergeAttributes(lists [][]AttributesRow) ([]AttributesRow, error) {
	all := slices.Concat(lists...)
	if len(all) > maxAttributeRows {
		return nil, tooManyRows(maxAttributeRows)
	}
	return all, nil
}

// ShareRowBudget returns a context whose reads of attributes share a budget: that of ctx, or else that of one read.
func ShareRowBudget(ctx context.Context) context.Context {
	if _, ok := ctx.Value(rowBudgetKey{}).(*RowBudget); ok {
		return ctx
	}
	ctx, _ = WithRowBudget(ctx, maxRowBytes)
	return ctx
}

// KindOf returns the kind of an id of this database, if it is known without reading.
func (r *Reader) KindOf(id int64) (vedette.Kind, bool) { return r.kinds.CachedKind(id) }

// MergedInventory is an Inventory of several databases, and of what it was made. The zero value is of none.
type MergedInventory struct {
	merged *Inventory
	parts  []*Inventory
}

// Merge returns the inventory of all parts. As long as no part changes, that is the same pointer, and as long as nothing changes in an
// application, its Application is.
func (m MergedInventory) Merge(parts []*Inventory) (MergedInventory, *Inventory) {
	if m.merged != nil && slices.Equal(m.parts, parts) {
		return m, m.merged
	}
	next := newInventory(nil)
	for _, part := range parts {
		for name, application := range part.applications {
			if next.applications[name] == nil {
				next.applications[name] = m.application(name, parts, application)
				next.names = append(next.names, name)
			}
		}
	}
	slices.Sort(next.names)
	return MergedInventory{next, slices.Clone(parts)}, next
}

// application merges what parts have of an application, one of which is given.
func (m MergedInventory) application(name string, parts []*Inventory, one *Application) *Application {
	var accounts []AccountClusters
	of, isSame := 0, m.merged != nil
	for i, part := range parts {
		a := part.applications[name]
		isSame = isSame && m.parts[i].applications[name] == a
		if a != nil {
			of++
			accounts = append(accounts, a.Accounts...)
		}
	}
	switch {
	case of == 1:
		return one
	case isSame:
		return m.merged.applications[name]
	}
	slices.SortFunc(accounts, func(a, b AccountClusters) int { return cmp.Compare(a.Account, b.Account) })
	return &Application{Name: name, Accounts: accounts}
}
