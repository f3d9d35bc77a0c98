package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
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
	var flags targetFlags
	cmd := &cobra.Command{Use: use + targetUsage, Short: short, RunE: func(cmd *cobra.Command, args []string) error {
		if err := flags.change.validate("json", "yaml"); err != nil {
			return err
		}
		return flags.forEachObject(cmd, args, func(ctx context.Context, run *accountRun, t target) error {
			out, ok, err := run.execute(ctx, use+" "+t.displayName(), t.operation(verb))
			if ok {
				run.report(out, t.displayName(), pastTense)
			}
			return err
		})
	}}
	flags.addFlags(cmd)
	flags.change.addFlags(cmd)
	return cmd
}

func newRolloutUndo() *cobra.Command {
	var flags targetFlags
	var revision int64
	cmd := &cobra.Command{Use: "undo" + targetUsage, Short: "Go back to an earlier revision", RunE: func(cmd *cobra.Command, args []string) error {
		if revision < 0 {
			return vedette.Errorf(vedette.Invalid, "--to-revision is %d and can't be negative", revision)
		}
		if err := flags.change.validate("json", "yaml"); err != nil {
			return err
		}
		return flags.forEachObject(cmd, args, func(ctx context.Context, run *accountRun, t target) error {
			op := client.Operation{Args: vedette.UndoArgs{Target: t.reference(), Revision: revision}}
			out, ok, err := run.execute(ctx, "undo "+t.displayName(), op)
			if ok {
				run.report(out, t.displayName(), orDefault(out.Message, "rolled back"))
			}
			return err
		})
	}}
	flags.addFlags(cmd)
	flags.change.addFlags(cmd)
	cmd.Flags().Int64Var(&revision, "to-revision", 0, "the revision to go back to; 0 for the one before")
	return cmd
}

func newRolloutStatus() *cobra.Command {
	var flags targetFlags
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
			flags.interleaved = true
			return flags.forEachObject(cmd, args, func(ctx context.Context, run *accountRun, t target) error {
				return rollout{t, !watch}.follow(ctx, run, deadline)
			})
		},
	}
	flags.addFlags(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "go on until the rollout has ended")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0 for as long as it takes")
	return cmd
}

// rollout is a workload whose pods are being replaced.
type rollout struct {
	target
	once bool // look at it once only
}

// rolloutOf is the rollout that an apply has begun, if the kind has any.
func rolloutOf(d document, out client.Outcome) (rollout, bool) {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	if group != "apps" || !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, d.Kind) || len(out.Keys) > 1 {
		return rollout{}, false
	}
	t := target{kind: d.Kind, apiVersion: d.APIVersion, namespace: d.Metadata.Namespace, name: d.Metadata.Name}
	if len(out.Keys) == 1 { // it may have been named by the cluster
		t.namespace, t.name = out.Keys[0].Namespace, out.Keys[0].Name
	}
	return rollout{target: t}, true
}

// How often a rollout is looked at.
const (
	minPollInterval = 200 * time.Millisecond
	maxPollInterval = 2 * time.Second
)

// follow tells how far a rollout is, each time that it has got further, until it
// has ended or a time has come; the zero time never does.
func (r rollout) follow(ctx context.Context, run *accountRun, deadline time.Time) error {
	poll := backoff.NewExponentialBackOff()
	poll.InitialInterval, poll.MaxInterval = minPollInterval, maxPollInterval
	last := ""
	for {
		out, ok, err := run.execute(ctx, "rollout of "+r.displayName(), r.operation(vedette.VerbStatus))
		if !ok {
			return err
		}
		var status vedette.RolloutStatus
		if err := json.Unmarshal(out.Result, &status); err != nil {
			run.succeeded--
			run.failf("what is said of the rollout of %s makes no sense: %v", r.displayName(), err)
			return nil
		}
		if ended := r.printStatus(run, status, &last); ended || r.once {
			return nil
		}
		run.succeeded--
		if !deadline.IsZero() && time.Now().After(deadline) {
			run.failf("timed out waiting for %s to be rolled out: %s", r.displayName(), status.Message)
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
func (r rollout) printStatus(run *accountRun, status vedette.RolloutStatus, last *string) bool {
	switch {
	case status.Failed:
		run.succeeded--
		run.failf("%s", status.Message)
		return true
	case status.Done:
		run.printf("%s", status.Message)
		return true
	case status.Message != *last:
		*last = status.Message
		run.printf("Waiting for %s %q rollout to finish: %s...", kindWords(r.kind), r.name, kubectlWords(status.Message))
	}
	return false
}

// kindWords is a kind as kubectl words it in sentences.
func kindWords(kind string) string {
	name, _, _ := strings.Cut(kindDisplayName(kind), ".")
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
