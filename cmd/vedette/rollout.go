package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
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
		Short: "Look at and steer the rollouts of Deployments, StatefulSets and DaemonSets",
		Example: `  vedette rollout status deployment/web -n shop --account 'prod-*'
  vedette rollout undo deployment/web --to-revision 3`,
	}
	cmd.AddCommand(newRolloutStatus(), newRolloutHistory(), newRolloutUndo(),
		newRolloutAction("pause", "Stop a rollout", vedette.VerbPause, "paused"),
		newRolloutAction("resume", "Let a paused rollout go on", vedette.VerbResume, "resumed"),
		newRolloutAction("restart", "Roll out the same pods once more", vedette.VerbRestart, "restarted"))
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
			out, ok, err := run.Execute(ctx, use+" "+t.DisplayName(), t.Operation(verb))
			if ok {
				run.Report(out, t.DisplayName(), pastTense)
			}
			return err
		})
	}}
	flags.AddFlags(cmd)
	flags.Change.AddFlags(cmd)
	return cmd
}

func newRolloutUndo() *cobra.Command {
	var flags target.Flags
	var revision int64
	cmd := &cobra.Command{Use: "undo" + targetUsage, Short: "Go back to an earlier revision", RunE: func(cmd *cobra.Command, args []string) error {
		if revision < 0 {
			return vedette.Errorf(vedette.Invalid, "--to-revision is %d and can't be negative", revision)
		}
		if err := flags.Change.Validate("json", "yaml"); err != nil {
			return err
		}
		return flags.ForEachObject(cmd, args, func(ctx context.Context, run *fanout.Run, t target.Target) error {
			op := t.Operation(vedette.VerbUndo)
			op.Revision = revision
			out, ok, err := run.Execute(ctx, "undo "+t.DisplayName(), op)
			if ok {
				run.Report(out, t.DisplayName(), cmp.Or(out.Message, "rolled back"))
			}
			return err
		})
	}}
	flags.AddFlags(cmd)
	flags.Change.AddFlags(cmd)
	cmd.Flags().Int64Var(&revision, "to-revision", 0, "the revision to go back to; 0 for the one before")
	return cmd
}

func newRolloutStatus() *cobra.Command {
	var flags target.Flags
	var watch bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status" + targetUsage,
		Short: "Show how far a rollout is, until it has ended",
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
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "go on until the rollout has ended")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0 for as long as it takes")
	return cmd
}

// rollout is a workload whose pods are being replaced.
type rollout struct {
	target.Target
	once bool // look at it once only
}

// rolloutOf is the rollout that an apply has begun, if the kind has any.
func rolloutOf(d manifests.Document, out client.Outcome) (rollout, bool) {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	if group != "apps" || !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, d.Kind) || len(out.Keys) > 1 {
		return rollout{}, false
	}
	t := target.Target{Kind: d.Kind, APIVersion: d.APIVersion, Namespace: d.Metadata.Namespace, Name: d.Metadata.Name}
	if len(out.Keys) == 1 { // it may have been named by the cluster
		t.Namespace, t.Name = out.Keys[0].Namespace, out.Keys[0].Name
	}
	return rollout{Target: t}, true
}

// How often a rollout is looked at.
const (
	minPollInterval = 200 * time.Millisecond
	maxPollInterval = 2 * time.Second
)

// follow tells how far a rollout is, each time that it has got further, until it
// has ended or a time has come; the zero time never does.
func (r rollout) follow(ctx context.Context, run *fanout.Run, deadline time.Time) error {
	poll := backoff.NewExponentialBackOff()
	poll.InitialInterval, poll.MaxInterval = minPollInterval, maxPollInterval
	last := ""
	for {
		out, ok, err := run.Query(ctx, "rollout of "+r.DisplayName(), r.Operation(vedette.VerbStatus))
		if !ok {
			return err
		}
		var status vedette.RolloutStatus
		if err := json.Unmarshal(out.Result, &status); err != nil {
			run.Failf("what is said of the rollout of %s makes no sense: %v", r.DisplayName(), err)
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

// printStatus reports whether the rollout has ended.
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

// kindWords is a kind as kubectl words it in sentences.
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

// kubectlWords says "1 out of 3 new replicas" as kubectl does, and "1 of 3 updated
// replicas" as it does too.
func kubectlWords(message string) string {
	if strings.Contains(message, " new ") {
		return strings.Replace(message, " of ", " out of ", 1)
	}
	return message
}
