package fanout

import (
	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
)

// AddServerFlags is AddFlags for commands whose changes only a cluster can compute, so that there is
// no client-side dry run.
func (o *ChangeOptions) AddServerFlags(cmd *cobra.Command) {
	o.AddFlags(cmd)
	cmd.Flags().Lookup("dry-run").Usage = "none or server. server: the API servers validate the changes without storing them."
}

// ValidateServer is Validate for commands with AddServerFlags.
func (o ChangeOptions) ValidateServer() error {
	switch o.dryRun {
	case dryRunClient:
		return vedette.Errorf(vedette.Invalid,
			"--dry-run=client is not supported, because only the cluster knows what the object becomes: use --dry-run=server, with -o yaml to see it")
	case dryRunUnset:
		return vedette.Errorf(vedette.Invalid, "--dry-run needs a value: use --dry-run=server")
	}
	return o.Validate("json", "yaml")
}

// Confirm confirms --all, for commands that change nothing this time.
func (o *ChangeOptions) Confirm() { o.yes = true }

// SetServerDryRun makes every change a dry run, for commands that only show what would change.
func (o *ChangeOptions) SetServerDryRun() { o.dryRun = dryRunServer }
