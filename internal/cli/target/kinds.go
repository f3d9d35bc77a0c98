package target

import (
	"cmp"
	"context"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// Selection is an argument, and what its kind means in the clusters.
type Selection struct {
	ResourceArg
	Kinds   []client.ServedKind  // several if the argument names a category, or if clusters differ
	Unknown []client.AccountNote // accounts whose clusters could not say what they serve
}

// Resolve asks the server what the kinds of arguments mean in the clusters of the accounts that match a pattern.
func Resolve(ctx context.Context, c *client.Client, account, namespace string, args []ResourceArg) ([]Selection, error) {
	type scope struct{ account, namespace string }
	names := map[scope][]string{}
	scopeOf := func(arg ResourceArg) scope {
		if arg.Account != "" {
			return scope{arg.Account, arg.Namespace}
		}
		return scope{account, cmp.Or(arg.Namespace, namespace)} // of a file
	}
	for _, arg := range args {
		at := scopeOf(arg)
		if !slices.Contains(names[at], arg.Kind) {
			names[at] = append(names[at], arg.Kind)
		}
	}
	served := map[scope]client.ServedKinds{}
	for at, kinds := range names {
		var err error
		if served[at], err = c.ServedKinds(ctx, at.account, at.namespace, kinds...); err != nil {
			return nil, err
		}
	}
	var all []Selection
	for _, arg := range args {
		s := Selection{ResourceArg: arg, Unknown: served[scopeOf(arg)].Unknown}
		for _, k := range served[scopeOf(arg)].Items {
			if k.Name == arg.Kind {
				s.Kinds = append(s.Kinds, k)
			}
		}
		if len(s.Kinds) == 0 {
			return nil, vedette.Errorf(vedette.Unavailable, "the server does not say what the kind %.100q means", arg.Kind)
		}
		all = append(all, s)
	}
	return all, nil
}
