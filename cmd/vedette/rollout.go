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
		newRolloutDeed("pause", "Stop a rollout", vedette.VerbPause, "paused"),
		newRolloutDeed("resume", "Let a paused rollout go on", vedette.VerbResume, "resumed"),
		newRolloutDeed("restart", "Roll out the same pods once more", vedette.VerbRestart, "restarted"))
	return cmd
}

const aimsUse = " TYPE NAME... | TYPE/NAME... | TYPE -l SELECTOR | -f FILE"

func newRolloutDeed(use, short string, verb vedette.Verb, done string) *cobra.Command {
	var a aims
	cmd := &cobra.Command{Use: use + aimsUse, Short: short, RunE: func(cmd *cobra.Command, args []string) error {
		if err := a.manner.validate("json", "yaml"); err != nil {
			return err
		}
		return a.named(cmd, args, func(ctx context.Context, h *hand, one aim) error {
			out, ok, err := h.must(ctx, use+" "+one.label(), one.on(verb))
			if ok {
				h.report(out, one.label(), done)
			}
			return err
		})
	}}
	a.flags(cmd)
	a.manner.flags(cmd)
	return cmd
}

func newRolloutUndo() *cobra.Command {
	var a aims
	var revision int64
	cmd := &cobra.Command{Use: "undo" + aimsUse, Short: "Go back to an earlier revision", RunE: func(cmd *cobra.Command, args []string) error {
		if revision < 0 {
			return vedette.Errorf(vedette.Invalid, "--to-revision is %d and can't be negative", revision)
		}
		if err := a.manner.validate("json", "yaml"); err != nil {
			return err
		}
		return a.named(cmd, args, func(ctx context.Context, h *hand, one aim) error {
			op := one.on(vedette.VerbUndo)
			op.Revision = revision
			out, ok, err := h.must(ctx, "undo "+one.label(), op)
			if ok {
				h.report(out, one.label(), or(out.Message, "rolled back"))
			}
			return err
		})
	}}
	a.flags(cmd)
	a.manner.flags(cmd)
	cmd.Flags().Int64Var(&revision, "to-revision", 0, "the revision to go back to; 0 for the one before")
	return cmd
}

func newRolloutStatus() *cobra.Command {
	var a aims
	var watch bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status" + aimsUse,
		Short: "Show how far a rollout is, until it has ended",
		RunE: func(cmd *cobra.Command, args []string) error {
			var ends time.Time
			if timeout > 0 {
				ends = time.Now().Add(timeout)
			}
			a.live = true
			return a.named(cmd, args, func(ctx context.Context, h *hand, one aim) error {
				return rollout{one, !watch}.follow(ctx, h, ends)
			})
		},
	}
	a.flags(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "go on until the rollout has ended")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0 for as long as it takes")
	return cmd
}

// rollout is a workload whose pods are being replaced.
type rollout struct {
	aim
	once bool // look at it once only
}

// rolloutOf is the rollout that an apply has begun, if the kind has any.
func rolloutOf(d document, out client.Outcome) (rollout, bool) {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	if group != "apps" || !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, d.Kind) || len(out.Keys) > 1 {
		return rollout{}, false
	}
	a := aim{kind: d.Kind, apiVersion: d.APIVersion, namespace: d.Metadata.Namespace, name: d.Metadata.Name}
	if len(out.Keys) == 1 { // it may have been named by the cluster
		a.namespace, a.name = out.Keys[0].Namespace, out.Keys[0].Name
	}
	return rollout{aim: a}, true
}

// How often a rollout is looked at.
const (
	lookFirst  = 200 * time.Millisecond
	lookSlowly = 2 * time.Second
)

// follow tells how far a rollout is, each time that it has got further, until it
// has ended or a time has come; the zero time never does.
func (r rollout) follow(ctx context.Context, h *hand, ends time.Time) error {
	look := backoff.NewExponentialBackOff()
	look.InitialInterval, look.MaxInterval = lookFirst, lookSlowly
	last := ""
	for {
		out, ok, err := h.must(ctx, "rollout of "+r.label(), r.on(vedette.VerbStatus))
		if !ok {
			return err
		}
		var status vedette.RolloutStatus
		if err := json.Unmarshal(out.Result, &status); err != nil {
			h.done--
			h.fail("what is said of the rollout of %s makes no sense: %v", r.label(), err)
			return nil
		}
		if ended := r.tell(h, status, &last); ended || r.once {
			return nil
		}
		h.done--
		if !ends.IsZero() && time.Now().After(ends) {
			h.fail("timed out waiting for %s to be rolled out: %s", r.label(), status.Message)
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(look.NextBackOff()):
		}
	}
}

// tell reports whether the rollout has ended.
func (r rollout) tell(h *hand, status vedette.RolloutStatus, last *string) bool {
	switch {
	case status.Failed:
		h.done--
		h.fail("%s", status.Message)
		return true
	case status.Done:
		h.say("%s", status.Message)
		return true
	case status.Message != *last:
		*last = status.Message
		h.say("Waiting for %s %q rollout to finish: %s...", spokenKind(r.kind), r.name, kubectlWords(status.Message))
	}
	return false
}

// spokenKind is a kind as kubectl words it in sentences.
func spokenKind(kind string) string {
	name, _, _ := strings.Cut(kindLabel(kind), ".")
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
