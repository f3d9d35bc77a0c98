package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

// readStored reads the objects of a kind that the server has, and returns the accounts of what it found.
type readStored func(ctx context.Context, q client.Query) (accounts map[string]bool, err error)

// objectReader reads the objects of arguments: from the server what agents report, and the rest from the clusters.
type objectReader struct {
	*getter
	stored readStored
	live   []liveObject
	total  int // reads of clusters
	failed int // those whose errors are printed
	errs   []error
}

// read reads the objects of all arguments. It returns those that were read from the clusters. An object that was named and
// not found is an error, which says of which accounts nothing is known.
func (g *getter) read(ctx context.Context, args []target.ResourceArg, stored readStored) ([]liveObject, error) {
	selections, err := target.Resolve(ctx, g.client, g.account, g.namespace, args)
	if err != nil {
		return nil, err
	}
	r := &objectReader{getter: g, stored: stored}
	for _, s := range selections {
		if err := r.readSelection(ctx, s); err != nil {
			return r.live, errors.Join(append(r.errs, err)...)
		}
	}
	if err := errors.Join(r.errs...); err != nil || r.failed == 0 {
		return r.live, err
	}
	return r.live, fanout.FailedError{Failed: r.failed, Total: r.total}
}

// readSelection reads the objects of one argument. An error of it ends the command.
func (r *objectReader) readSelection(ctx context.Context, s target.Selection) error {
	r.tellDifferences(s)
	found, unknown := 0, s.Unknown
	for _, k := range s.Kinds {
		if r.fields != nil && !r.fields.IsCached(vedette.ParseKind(k.Kind)) {
			if err := r.readByFields(ctx, s.ResourceArg, k); err != nil {
				return err
			}
			continue
		}
		inAccounts := map[string]bool{}
		if k.IsCached() {
			q := r.query(s.ResourceArg)
			q.Kind = k.Kind
			var err error
			if inAccounts, err = r.stored(ctx, q); err != nil {
				r.errs = append(r.errs, err)
				return nil //nolint:nilerr // the other arguments may be read
			}
		}
		ask, cannotAsk := r.accountsToAsk(s.ResourceArg, k, inAccounts)
		objects, notAnswered, err := r.readLive(ctx, s.ResourceArg, k, ask)
		if err != nil {
			return err
		}
		r.live = append(r.live, objects...)
		found += len(inAccounts) + len(objects)
		unknown = append(append(unknown, cannotAsk...), notAnswered...)
	}
	if err := s.NotFoundError(found, unknown); err != nil {
		if !r.ignoreNotFound || vedette.KindOf(err) != vedette.NotFound {
			r.errs = append(r.errs, err)
		}
		return nil
	}
	for _, note := range s.Unknown {
		text := fmt.Sprintf("%s: it is not known whether its cluster serves %s: %s", note.Account, s.Kind, note.Message)
		r.notices.Add(note.Account+" "+s.Kind, text)
		if s.Name == "" { // the list may not be whole
			r.failed, r.total = r.failed+1, r.total+1
		}
	}
	return nil
}

// readByFields reads the objects that match the field selector from all clusters: agents do not report its fields, and only the
// clusters know which there are.
func (r *objectReader) readByFields(ctx context.Context, arg target.ResourceArg, k client.ServedKind) error {
	if !r.mayAsk(arg, k) {
		return vedette.Errorf(vedette.NotCached, "only the clusters know the fields of %s in %q: use -n NAMESPACE, -A or --account to ask them", k.Kind, r.fields)
	}
	fan, err := fanout.New(r.cmd, cmp.Or(r.account, "*")) //nolint:contextcheck // it takes the context of the command
	if err != nil {
		return err
	}
	objects, _, err := r.readLive(ctx, arg, k, fan.Accounts)
	r.live = append(r.live, objects...)
	return err
}

// tellDifferences says if a name means another kind in another cluster.
func (r *objectReader) tellDifferences(s target.Selection) {
	var meanings []string
	for _, k := range s.Kinds {
		if !k.IsCategory {
			meanings = append(meanings, fmt.Sprintf("%s in %s", k.Kind, output.Count(k.AccountCount, "account")))
		}
	}
	if len(meanings) > 1 {
		r.notices.Add("meanings "+s.Kind, fmt.Sprintf("%s means %s", s.Kind, strings.Join(meanings, " and ")))
	}
}

// accountsToAsk returns the accounts whose clusters must be asked for objects of a kind, and those that cannot be asked. A list
// is read from the clusters of accounts whose agents do not report the kind. An object that was named is also looked for where
// the server does not have it and may be behind.
func (r *objectReader) accountsToAsk(arg target.ResourceArg, k client.ServedKind, inAccounts map[string]bool) (ask []string,
	cannotAsk []client.AccountNote) {
	notes := k.NotCached
	if arg.Name != "" {
		for _, note := range k.NotLive {
			if !inAccounts[note.Account] {
				notes = append(notes, note)
			}
		}
	}
	if len(notes) > 0 && !r.mayAsk(arg, k) {
		r.tellNotAsked(arg, k)
		return nil, notes
	}
	for _, note := range notes {
		if note.Connected {
			ask = append(ask, note.Account)
			continue
		}
		cannotAsk = append(cannotAsk, note)
		if arg.Name == "" {
			r.failed, r.total = r.failed+1, r.total+1
			r.notices.Add(note.Account+" "+k.Kind, fmt.Sprintf("%s: %s cannot be read: %s", note.Account, k.Kind, note.Message))
		}
	}
	return ask, cannotAsk
}

// mayAsk reports whether to read objects from the clusters. For a list of several accounts the user must have selected a
// namespace, -A or accounts, because a list of everything in all clusters is expensive. Clusters cannot select by Spinnaker
// application.
func (g *getter) mayAsk(arg target.ResourceArg, k client.ServedKind) bool {
	selected := g.namespace != "" || g.allNamespaces || g.account != "" || arg.Account != "" || arg.Name != "" || k.AccountCount == 1
	return g.application == "" && selected
}

// tellNotAsked says that a list is not complete, and how to get the rest.
func (r *objectReader) tellNotAsked(arg target.ResourceArg, k client.ServedKind) {
	hint := ": use -n NAMESPACE, -A or --account to read from the clusters"
	if r.application != "" {
		hint = ", and clusters do not know applications"
	}
	switch {
	case arg.Name != "":
	case !k.IsCached():
		r.errs = append(r.errs, vedette.Errorf(vedette.NotCached, "no agent reports %s%s", k.Kind, hint))
	default:
		r.notices.Add("not asked "+k.Kind, fmt.Sprintf("%s of %s are not shown, because their agents do not report this kind%s", k.Kind,
			output.Count(len(k.NotCached), "account"), hint))
	}
}

// namedReadTimeout bounds the wait for one object that the server does not have.
const namedReadTimeout = 10 * time.Second

// readLive reads the objects of an argument from the clusters of accounts. It prints the failures, and returns the accounts
// that did not answer.
func (r *objectReader) readLive(ctx context.Context, arg target.ResourceArg, k client.ServedKind, accounts []string) (
	all []liveObject, notAnswered []client.AccountNote, err error) {
	if len(accounts) == 0 {
		return nil, nil, nil
	}
	what, op := r.liveOperation(arg, k)
	fan := fanout.NewForAccounts(r.cmd, r.client, accounts)
	found, err := fanout.Collect(ctx, fan, func(ctx context.Context, run *fanout.Run) ([]liveObject, error) {
		out, ok, err := run.Find(ctx, what, op)
		if !ok {
			return nil, err
		}
		objects, ok := decodeLive(run, what, out.Objects)
		if ok {
			run.CountSuccess()
		}
		return objects, nil
	})
	if err != nil && !fanout.IsPartial(err) {
		return nil, nil, err
	}
	failed := fan.FailedAccounts()
	r.failed, r.total = r.failed+len(failed), r.total+len(accounts)
	for _, account := range accounts {
		all = append(all, found[account]...)
	}
	for _, account := range failed {
		notAnswered = append(notAnswered, client.AccountNote{Account: account, Message: "its cluster did not answer"})
	}
	return all, notAnswered, nil
}

// liveOperation returns the operation that reads the objects of an argument. An object without a namespace may be in any, so that
// it is looked for in a list.
func (r *objectReader) liveOperation(arg target.ResourceArg, k client.ServedKind) (what string, op client.Operation) {
	t := vedette.Target{Kind: k.Kind, APIVersion: k.APIVersion(), Namespace: r.namespace}
	if arg.Account != "" || arg.Namespace != "" {
		t.Namespace = arg.Namespace
	}
	if !k.Namespaced {
		t.Namespace = ""
	}
	if arg.Name == "" {
		args := vedette.ListArgs{Target: t, LabelSelector: r.selector, FieldSelector: r.fields.String()}
		return "list " + arg.Kind, client.Operation{Args: args}
	}
	what = "read " + arg.Kind + "/" + arg.Name
	if r.selector == "" && (t.Namespace != "" || !k.Namespaced) {
		t.Name = arg.Name
		return what, client.Operation{Args: vedette.GetArgs{Target: t}, Timeout: namedReadTimeout}
	}
	return what, client.Operation{Timeout: namedReadTimeout,
		Args: vedette.ListArgs{Target: t, LabelSelector: r.selector, FieldSelector: "metadata.name=" + arg.Name}}
}
