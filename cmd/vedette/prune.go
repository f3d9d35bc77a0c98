package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// pruneOptions are the flags of an apply that deletes what is applied no more.
type pruneOptions struct {
	prune, all bool
	allowlist  []string
	cascade    string
}

func (p *pruneOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&p.prune, "prune", false, "then delete what was applied once, is in none of the files, and fits -l or --all")
	flags.BoolVar(&p.all, "all", false, "with --prune: whatever its labels; in several accounts with --yes only")
	flags.StringArrayVar(&p.allowlist, "prune-allowlist", nil, "with --prune: only these kinds, as group/version/kind (apps/v1/Deployment, core/v1/ConfigMap)")
	flags.StringVar(&p.cascade, "cascade", "background", "with --prune: what becomes of the objects that the pruned ones own: background, foreground or orphan")
}

func (p pruneOptions) validate(o applyOptions) error {
	switch {
	case !p.prune && (p.all || len(p.allowlist) > 0):
		return vedette.Errorf(vedette.Invalid, "--all and --prune-allowlist say what --prune deletes: say --prune too, or leave them out")
	case !p.prune:
		return nil
	case p.all && o.selector != "":
		return vedette.Errorf(vedette.Invalid, "--all prunes whatever its labels, and -l what has some: leave one out")
	case !p.all && strings.TrimSpace(o.selector) == "":
		return vedette.Errorf(vedette.Invalid, "--prune would delete all that was applied and is not in the files: choose by labels with -l, or say --all if that is meant")
	case o.serverSide:
		return vedette.Errorf(vedette.Invalid, "--prune knows what was applied by an annotation that server-side applies don't leave: leave --server-side out")
	case o.change.isClientDryRun():
		return vedette.Errorf(vedette.Invalid, "--dry-run=client asks no cluster, so that it can't know what would be pruned: write --dry-run=server")
	case o.change.output == "json" || o.change.output == "yaml":
		return vedette.Errorf(vedette.Invalid, "of what is pruned there is nothing left to print: leave -o %s out", o.change.output)
	case !slices.Contains([]string{"background", "foreground", "orphan"}, p.cascade):
		return vedette.Errorf(vedette.Invalid, "--cascade is %q and may be background, foreground or orphan", p.cascade)
	}
	for _, kind := range p.allowlist {
		if parts := strings.Split(kind, "/"); len(parts) != 3 || slices.Contains(parts[1:], "") {
			return vedette.Errorf(vedette.Invalid, "--prune-allowlist has %q, and takes group/version/kind: apps/v1/Deployment, core/v1/ConfigMap", kind)
		}
	}
	return nil
}

// appliedSet is what was applied in an account.
type appliedSet struct {
	uids       []string
	namespaces map[string]bool
}

// add notes an object that was applied. Where the answer that tells it got lost, it
// is read.
func (k *appliedSet) add(ctx context.Context, run *accountRun, d document, out client.Outcome) error {
	id := identityOf(out)
	if id.UID == "" {
		read, ok, err := run.execute(ctx, "read "+d.displayName(), d.operation(vedette.VerbGet))
		if !ok {
			return err
		}
		run.succeeded--
		id = identityOf(read)
	}
	if id.UID == "" {
		run.failf("the cluster does not say which object %s is", d.displayName())
		return nil
	}
	k.uids = append(k.uids, id.UID)
	if id.Namespace != "" {
		k.namespaces[id.Namespace] = true
	}
	return nil
}

// pruneUnapplied deletes what is applied no more, unless something could not be
// applied: it may be what the rest depends on.
func (o applyOptions) pruneUnapplied(ctx context.Context, run *accountRun, keep appliedSet) error {
	if run.failed > 0 || len(run.fanOut.loadErrors) > 0 {
		run.warnf("Nothing is pruned in %s: not all could be applied.", run.account)
		return nil
	}
	op := client.Operation{Timeout: o.timeout, Args: vedette.PruneArgs{Kinds: o.allowlist, Namespaces: slices.Sorted(maps.Keys(keep.namespaces)), All: o.all, LabelSelector: o.selector,
		Keep: keep.uids, Propagation: o.cascade}}
	out, _, err := run.execute(ctx, "prune", op)
	for _, key := range out.Keys { // some may be, though not all could
		if o.change.output == "name" {
			run.reportNames(client.Outcome{Keys: []client.Key{key}}, "")
			continue
		}
		run.printf("%s pruned%s", fmt.Sprintf("%s/%s", kindDisplayName(key.Kind), key.Name), o.change.suffix())
	}
	return err
}
