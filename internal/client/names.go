package client

import (
	"context"
	"strconv"
)

// NamesOf says what to name.
type NamesOf string

// The values of NamesOf.
const (
	NamesOfAccounts   NamesOf = "accounts"
	NamesOfKinds      NamesOf = "kinds"
	NamesOfNamespaces NamesOf = "namespaces"
	NamesOfObjects    NamesOf = "objects"
)

// NameQuery selects names that begin with a prefix.
type NameQuery struct {
	Prefix                   string
	Account, Kind, Namespace string // as in Query
	Limit                    int
}

// Names returns different names, sorted, at most q.Limit. It is one small request, for completion.
func (c *Client) Names(ctx context.Context, of NamesOf, q NameQuery) ([]string, error) {
	v := nonEmpty(map[string]string{"of": string(of), "prefix": q.Prefix, "account": q.Account, "kind": q.Kind, "namespace": q.Namespace})
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	var page struct{ Items []string }
	err := c.get(ctx, "/names", v, &page)
	return page.Items, err
}
