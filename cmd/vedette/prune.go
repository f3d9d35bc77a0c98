package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
)

// pruneOptions are the flags of apply --prune, which deletes objects that were removed from
// the manifests.
type pruneOptions struct {
	prune, all bool
	allowlist  []string
	cascade    string
}

func (p *pruneOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&p.prune, "prune", false, "Delete objects that were applied before, match -l or --all, and are not in the files.")
	flags.BoolVar(&p.all, "all", false, "With --prune, consider all objects. Requires --yes for several accounts.")
	flags.StringArrayVar(&p.allowlist, "prune-allowlist", nil,
		"With --prune, delete only these kinds, as group/version/kind (apps/v1/Deployment, core/v1/ConfigMap).")
	flags.StringVar(&p.cascade, "cascade", "background",
		"With --prune, how to delete objects that the pruned objects own: background, foreground or orphan.")
}

func (p pruneOptions) validate(o applyOptions) error {
	switch {
	case !p.prune && (p.all || len(p.allowlist) > 0):
		return vedette.Errorf(vedette.Invalid, "--all and --prune-allowlist require --prune")
	case !p.prune:
		return nil
	case p.all && o.Selector != "":
		return vedette.Errorf(vedette.Invalid, "--all and -l exclude each other")
	case !p.all && strings.TrimSpace(o.Selector) == "":
		return vedette.Errorf(vedette.Invalid,
			"--prune requires -l, or --all to delete every object that was applied before and is not in the files")
	case o.serverSide:
		return vedette.Errorf(vedette.Invalid,
			"--prune cannot be combined with --server-side: it finds objects by an annotation that only client-side apply sets")
	case o.change.IsClientDryRun():
		return vedette.Errorf(vedette.Invalid, "--dry-run=client does not contact the clusters and cannot prune: use --dry-run=server")
	case o.change.Output == "json" || o.change.Output == "yaml":
		return vedette.Errorf(vedette.Invalid, "--prune cannot be combined with -o %s: deleted objects cannot be printed", o.change.Output)
	case !slices.Contains([]string{"background", "foreground", "orphan"}, p.cascade):
		return vedette.Errorf(vedette.Invalid, "invalid --cascade %q: use background, foreground or orphan", p.cascade)
	}
	for _, kind := range p.allowlist {
		if parts := strings.Split(kind, "/"); len(parts) != 3 || slices.Contains(parts[1:], "") {
			return vedette.Errorf(vedette.Invalid,
				"invalid --prune-allowlist %q: use group/version/kind, for example apps/v1/Deployment or core/v1/ConfigMap", kind)
		}
	}
	return nil
}

// appliedSet has the objects that were applied in an account, which prune keeps.
type appliedSet struct {
	uids       []string
	namespaces map[string]bool
}

// add adds an object that was applied. It reads the object if the outcome does not have it.
func (k *appliedSet) add(ctx context.Context, run *fanout.Run, d manifests.Document, out client.Outcome) error {
	id := identityOf(out)
	if id.UID == "" {
		read, ok, err := run.Query(ctx, "read "+d.DisplayName(), d.Operation(vedette.VerbGet))
		if !ok {
			return err
		}
		id = identityOf(read)
	}
	if id.UID == "" {
		run.Failf("the cluster returned no uid for %s", d.DisplayName())
		return nil
	}
	k.uids = append(k.uids, id.UID)
	if id.Namespace != "" {
		k.namespaces[id.Namespace] = true
	}
	return nil
}

// pruneUnapplied deletes objects that are not in the files anymore. It does nothing if
// anything failed, because the new objects may replace the old ones.
func (o applyOptions) pruneUnapplied(ctx context.Context, run *fanout.Run, keep appliedSet) error {
	if run.HasFailures() {
		run.Warnf("Nothing is pruned in %s, because some objects could not be applied.", run.Account)
		return nil
	}
	op := client.Operation{Timeout: o.timeout,
		Args: vedette.PruneArgs{Kinds: o.allowlist, Namespaces: slices.Sorted(maps.Keys(keep.namespaces)), All: o.all, LabelSelector: o.Selector,
			Keep: keep.uids, Propagation: o.cascade}}
	out, _, err := run.Execute(ctx, "prune", op)
	for _, key := range out.Keys { // some may be deleted even if the prune failed
		if o.change.Output == "name" {
			run.ReportNames(client.Outcome{Keys: []client.Key{key}}, "")
			continue
		}
		run.Printf("%s pruned%s", fmt.Sprintf("%s/%s", output.KindName(key.Kind), key.Name), o.change.Suffix())
	}
	return err
}
