package change

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

// objectFlags are the flags of commands that read objects and patch them.
type objectFlags struct {
	target.Flags
	manager string
}

// addFlags adds the flags. The verb is for messages about --all: "label".
func (f *objectFlags) addFlags(cmd *cobra.Command, verb, manager string) {
	f.AddFlags(cmd)
	f.AddSelectionFlags(cmd, verb)
	f.Change.AddServerFlags(cmd)
	addFieldManagerFlag(cmd, &f.manager, manager)
}

func addFieldManagerFlag(cmd *cobra.Command, manager *string, value string) {
	cmd.Flags().StringVar(manager, "field-manager", value, "Name that owns the fields which the command sets.")
}

// readForChange reads the object that a command is going to change. What is for messages: "label pod/web".
func readForChange(ctx context.Context, run *fanout.Run, what string, t target.Target) (client.Outcome, map[string]any, bool, error) {
	out, ok, err := run.Query(ctx, what, t.Operation(vedette.VerbGet))
	if !ok {
		return out, nil, false, err
	}
	tree, ok := target.ObjectOf(run, what, out)
	return out, tree, ok, nil
}

// patchObject sends a patch, and reports the object.
func patchObject(ctx context.Context, run *fanout.Run, what string, args vedette.PatchArgs, patch map[string]any, action string) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	args.Patch = raw
	return run.Change(ctx, what, client.Operation{Args: args}, target.Target{Kind: args.Kind, Name: args.Name}.DisplayName(), action)
}

// isUnchanged reports whether a change has left the object as it was. The data of a Secret is not known, so a dry run
// cannot tell.
func isUnchanged(change fanout.ChangeOptions, before, after client.Outcome) bool {
	if !change.IsDryRun() {
		return identityOf(before).UID != "" && identityOf(before) == identityOf(after)
	}
	return sameContent(before, after) && len(after.Keys) == 1 && after.Keys[0].Kind != "Secret"
}
