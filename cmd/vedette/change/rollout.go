package change

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

func newRollout() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Manage rollouts of Deployments, StatefulSets and DaemonSets",
		Example: `  vedette rollout status deployment/web -n shop --account 'prod-*'
  vedette rollout undo deployment/web --to-revision 3`,
	}
	cmd.AddCommand(newRolloutStatus(), newRolloutHistory(), newRolloutUndo(),
		newRolloutAction("pause", "Pause rollouts", vedette.VerbPause, "paused"),
		newRolloutAction("resume", "Resume paused rollouts", vedette.VerbResume, "resumed"),
		newRolloutAction("restart", "Restart workloads: replace their pods by a new rollout", vedette.VerbRestart, "restarted"))
	return cmd
}

const targetUsage = " TYPE NAME... | TYPE/NAME... | TYPE -l SELECTOR | -f FILE"

func newRolloutAction(use, short string, verb vedette.Verb, pastTense string) *cobra.Command {
	var flags target.Flags
	cmd := &cobra.Command{Use: use + targetUsage, Short: short, RunE: func(cmd *cobra.Command, args []string) error {
		if err := flags.Change.Validate("json", "yaml"); err != nil {
			return err
		}
		return flags.ForEachObject(cmd, args, func(ctx context.Context, run *fanout.Run, t target.Target) error {
			return run.Change(ctx, use+" "+t.DisplayName(), t.Operation(verb), t.DisplayName(), pastTense)
		})
	}}
	flags.AddFlags(cmd)
	flags.Change.AddFlags(cmd)
	return cmd
}

func newRolloutUndo() *cobra.Command {
	var flags target.Flags
	var revision int64
	cmd := &cobra.Command{Use: "undo" + targetUsage, Short: "Roll back to an earlier revision",
		RunE: func(cmd *cobra.Command, args []string) error {
			if revision < 0 {
				return vedette.Errorf(vedette.Invalid, "invalid --to-revision %d: must not be negative", revision)
			}
			if err := flags.Change.Validate("json", "yaml"); err != nil {
				return err
			}
			return flags.ForEachObject(cmd, args, func(ctx context.Context, run *fanout.Run, t target.Target) error {
				op := client.Operation{Args: vedette.UndoArgs{Target: t.Reference(), Revision: revision}}
				out, ok, err := run.Execute(ctx, "undo "+t.DisplayName(), op)
				if ok {
					run.Report(out, t.DisplayName(), cmp.Or(out.Message, "rolled back"))
				}
				return err
			})
		}}
	flags.AddFlags(cmd)
	flags.Change.AddFlags(cmd)
	cmd.Flags().Int64Var(&revision, "to-revision", 0, "Revision to roll back to. 0 for the previous one.")
	return cmd
}

func newRolloutStatus() *cobra.Command {
	var flags target.Flags
	var watch bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status" + targetUsage,
		Short: "Show the status of rollouts until they have ended",
		RunE: func(cmd *cobra.Command, args []string) error {
			var deadline time.Time
			if timeout > 0 {
				deadline = time.Now().Add(timeout)
			}
			flags.Interleaved = true
			return flags.ForEachObject(cmd, args, func(ctx context.Context, run *fanout.Run, t target.Target) error {
				return rollout{t, !watch}.follow(ctx, run, deadline)
			})
		},
	}
	flags.AddFlags(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "Wait until the rollout has ended.")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "Time limit for waiting. 0 for no limit.")
	return cmd
}

// rollout is a workload whose rollout a command waits for.
type rollout struct {
	target.Target
	once bool // read the status once, without waiting
}

// rolloutOf returns the rollout that an apply has started, and false if the kind has no
// rollouts.
func rolloutOf(d manifests.Document, out client.Outcome) (rollout, bool) {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	if group != "apps" || !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, d.Kind) || len(out.Keys) > 1 {
		return rollout{}, false
	}
	t := target.Target{Kind: d.Kind, APIVersion: d.APIVersion, Namespace: d.Metadata.Namespace, Name: d.Metadata.Name}
	if len(out.Keys) == 1 { // the cluster may have generated the name
		t.Namespace, t.Name = out.Keys[0].Namespace, out.Keys[0].Name
	}
	return rollout{Target: t}, true
}

// follow prints the status of a rollout whenever it changes, until the rollout has ended or
// the deadline has passed. The zero time is no deadline.
func (r rollout) follow(ctx context.Context, run *fanout.Run, deadline time.Time) error {
	poll := fanout.NewPoll()
	last := ""
	for {
		out, ok, err := run.Query(ctx, "rollout of "+r.DisplayName(), r.Operation(vedette.VerbStatus))
		if !ok {
			return err
		}
		var status vedette.RolloutStatus
		if !run.Decode(out, "rollout status of "+r.DisplayName(), &status) {
			return nil
		}
		if ended := r.printStatus(run, status, &last); ended {
			return nil
		}
		if r.once {
			run.CountSuccess()
			return nil
		}
		if !deadline.IsZero() && time.Now().After(deadline) {
			run.Failf("timed out waiting for %s to be rolled out: %s", r.DisplayName(), status.Message)
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(poll.NextBackOff()):
		}
	}
}

// printStatus prints a status that differs from the last one, and reports whether the rollout
// has ended.
func (r rollout) printStatus(run *fanout.Run, status vedette.RolloutStatus, last *string) bool {
	switch {
	case status.Failed:
		run.Failf("%s", status.Message)
		return true
	case status.Done:
		run.CountSuccess()
		run.Printf("%s", status.Message)
		return true
	case status.Message != *last:
		*last = status.Message
		run.Printf("Waiting for %s %q rollout to finish: %s...", kindWords(r.Kind), r.Name, kubectlWords(status.Message))
	}
	return false
}

// kindWords returns a kind in the words of kubectl's messages.
func kindWords(kind string) string {
	name, _, _ := strings.Cut(output.KindName(kind), ".")
	switch name {
	case "statefulset":
		return "stateful set"
	case "daemonset":
		return "daemon set"
	}
	return name
}

// kubectlWords adapts a message to kubectl, which prints "1 out of 3 new replicas" but "1 of 3
// updated replicas".
func kubectlWords(message string) string {
	if strings.Contains(message, " new ") {
		return strings.Replace(message, " of ", " out of ", 1)
	}
	return message
}
