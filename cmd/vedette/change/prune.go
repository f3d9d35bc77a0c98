package change

import (
	"context"
	"encoding/json"
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
	case o.change.IsClientDryRun():
		return vedette.Errorf(vedette.Invalid, "--dry-run=client does not contact the clusters and cannot prune: use --dry-run=server")
	case o.change.Output == "json" || o.change.Output == "yaml":
		return vedette.Errorf(vedette.Invalid, "--prune cannot be combined with -o %s: deleted objects cannot be printed", o.change.Output)
	}
	if err := checkCascade(p.cascade); err != nil {
		return err
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
	kinds      map[string]bool // of the documents, as --prune-allowlist names them
}

// add adds an object that was applied. It reads the object if the outcome does not have it.
func (k *appliedSet) add(ctx context.Context, run *fanout.Run, d manifests.Document, out client.Outcome) error {
	k.kinds[pruneKind(d)] = true
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
		run.Noticef("Nothing is pruned in %s, because some objects could not be applied.", run.Account)
		return nil
	}
	op := client.Operation{Timeout: o.timeout,
		Args: vedette.PruneArgs{Kinds: o.allowlist, Namespaces: slices.Sorted(maps.Keys(keep.namespaces)), All: o.all, LabelSelector: o.Selector,
			Keep: keep.uids, Propagation: o.cascade}}
	out, ok, err := run.Execute(ctx, "prune", op)
	for _, key := range out.Keys { // some may be deleted even if the prune failed
		reportDeletion(run, o.change, key, output.KindName(key.Kind)+"/"+key.Name+" pruned")
	}
	if ok {
		reportKept(run, out, keep)
	}
	return err
}

// pruneKind returns the kind of a document as group/version/kind.
func pruneKind(d manifests.Document) string {
	if !strings.Contains(d.APIVersion, "/") {
		return "core/" + d.APIVersion + "/" + d.Kind
	}
	return d.APIVersion + "/" + d.Kind
}

// reportKept names the objects that a prune has left, and the kinds that it has not searched.
func reportKept(run *fanout.Run, out client.Outcome, keep appliedSet) {
	var left vedette.PruneResult
	if len(out.Result) == 0 || json.Unmarshal(out.Result, &left) != nil {
		run.Warnf("%s: the agent is of an earlier release: objects that were applied server-side, as ConfigMaps and Secrets are by default, are not pruned, and what is left is not named", run.Account)
		return
	}
	for _, o := range left.Kept {
		run.Warnf("%s: %s/%s%s is not pruned: %s", run.Account, output.KindName(o.Kind), o.Name, inNamespace(o.Namespace), o.Reason)
	}
	if left.KeptMore > 0 {
		run.Warnf("%s: %s more are not pruned for such reasons", run.Account, output.Count(left.KeptMore, "object"))
	}
	if left.Owned > 0 {
		run.Warnf("%s: %s of controllers are not pruned: they go with their owners", run.Account, output.Count(left.Owned, "object"))
	}
	for _, kind := range slices.Sorted(maps.Keys(keep.kinds)) {
		if !slices.Contains(left.Kinds, kind) {
			run.Warnf("%s: objects of the kind %s are not pruned: name all kinds with --prune-allowlist, also %s", run.Account, kind, kind)
		}
	}
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in " + namespace
}
