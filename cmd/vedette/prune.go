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

// pruning are the flags of an apply that deletes what is applied no more.
type pruning struct {
	prune, all bool
	allowlist  []string
	cascade    string
}

func (p *pruning) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&p.prune, "prune", false, "then delete what was applied once, is in none of the files, and fits -l or --all")
	flags.BoolVar(&p.all, "all", false, "with --prune: whatever its labels; in several accounts with --yes only")
	flags.StringArrayVar(&p.allowlist, "prune-allowlist", nil, "with --prune: only these kinds, as group/version/kind (apps/v1/Deployment, core/v1/ConfigMap)")
	flags.StringVar(&p.cascade, "cascade", "background", "with --prune: what becomes of the objects that the pruned ones own: background, foreground or orphan")
}

func (p pruning) validate(o applyOptions) error {
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
	case o.manner.local():
		return vedette.Errorf(vedette.Invalid, "--dry-run=client asks no cluster, so that it can't know what would be pruned: write --dry-run=server")
	case o.manner.output == "json" || o.manner.output == "yaml":
		return vedette.Errorf(vedette.Invalid, "of what is pruned there is nothing left to print: leave -o %s out", o.manner.output)
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

// keeping is what was applied in an account.
type keeping struct {
	uids       []string
	namespaces map[string]bool
}

// add notes an object that was applied. Where the answer that tells it got lost, it
// is read.
func (k *keeping) add(ctx context.Context, h *hand, d document, out client.Outcome) error {
	who := identityOf(out)
	if who.UID == "" {
		read, ok, err := h.must(ctx, "read "+d.label(), d.on(vedette.VerbGet))
		if !ok {
			return err
		}
		h.done--
		who = identityOf(read)
	}
	if who.UID == "" {
		h.fail("the cluster does not say which object %s is", d.label())
		return nil
	}
	k.uids = append(k.uids, who.UID)
	if who.Namespace != "" {
		k.namespaces[who.Namespace] = true
	}
	return nil
}

// pruneUnapplied deletes what is applied no more, unless something could not be
// applied: it may be what the rest depends on.
func (o applyOptions) pruneUnapplied(ctx context.Context, h *hand, kept keeping) error {
	if h.failed > 0 || len(h.crew.unread) > 0 {
		h.warn("Nothing is pruned in %s: not all could be applied.", h.account)
		return nil
	}
	op := client.Operation{Verb: vedette.VerbPrune, Kinds: o.allowlist, Namespaces: slices.Sorted(maps.Keys(kept.namespaces)), All: o.all, LabelSelector: o.selector,
		Keep: kept.uids, Propagation: o.cascade, Timeout: o.timeout}
	out, _, err := h.must(ctx, "prune", op)
	for _, key := range out.Keys { // some may be, though not all could
		if o.manner.output == "name" {
			h.reportNames(client.Outcome{Keys: []client.Key{key}}, "")
			continue
		}
		h.say("%s pruned%s", fmt.Sprintf("%s/%s", kindLabel(key.Kind), key.Name), o.manner.suffix())
	}
	return err
}
