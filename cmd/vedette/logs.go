package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

const logsLong = `Show what containers wrote: of a pod, of all pods of a workload, or of those with
some labels, in one cluster or in several.

Where several logs are shown, each line tells whose it is. With -f they are followed
together, line by line as they come; without it one comes after the other.`

const logsExample = `  vedette logs web-6c9f4-aaaaa -n shop
  vedette logs deployment/web -n shop --account 'prod-*' -f --since 10m
  vedette logs -l app=web --all-containers --tail 20`

type logOptions struct {
	target.Flags
	query          client.LogQuery
	allContainers  bool
	tail           int64
	since          time.Duration
	prefix         bool
	prefixSet      bool // --prefix was given
	allPods        bool
	limitBytes     int64 // of bytes of each log; 0 for none
	maxLogRequests int
}

func newLogs() *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:     "logs POD | TYPE/NAME | ACCOUNT/pod/NAMESPACE/NAME | -l SELECTOR",
		Short:   "Show what containers wrote",
		Long:    logsLong,
		Example: logsExample,
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.prefixSet = cmd.Flags().Changed("prefix") || o.allPods
			o.prefix = o.prefix || o.allPods
			if err := o.prepare(cmd.Flags().Changed("tail")); err != nil {
				return err
			}
			all, err := o.parsePods(args)
			if err != nil {
				return err
			}
			return o.run(cmd, all)
		},
	}
	flags := cmd.Flags()
	target.AddAccountFlag(cmd, &o.Account)
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "namespace of the pods; default if not given")
	flags.StringVarP(&o.Selector, "selector", "l", "", "the pods with these labels (app=web,tier!=db)")
	flags.BoolVarP(&o.query.Follow, "follow", "f", false, "go on with what is written")
	flags.StringVarP(&o.query.Container, "container", "c", "", "this container; the pod's default one if not given")
	flags.BoolVar(&o.allContainers, "all-containers", false, "all containers, init containers too")
	flags.BoolVarP(&o.query.Previous, "previous", "p", false, "of the instance before the last restart")
	flags.Int64Var(&o.tail, "tail", -1, "only so many of the last lines; -1 for all, which is 10 with -l")
	flags.DurationVar(&o.since, "since", 0, "only what is not older than 5s, 2m or 3h")
	flags.StringVar(&o.query.SinceTime, "since-time", "", "only what was written after this time (2026-01-31T12:00:00Z)")
	flags.BoolVar(&o.query.Timestamps, "timestamps", false, "begin each line with its time")
	flags.BoolVar(&o.prefix, "prefix", false, "begin each line with its account, pod and container; by default where there are several")
	flags.BoolVar(&o.allPods, "all-pods", false, "all pods of a workload, which is what is shown anyway, with --prefix")
	flags.Int64Var(&o.limitBytes, "limit-bytes", 0, "no more than so many bytes of each log; 0 for no limit")
	flags.IntVar(&o.maxLogRequests, "max-log-requests", 50, "how many logs may be followed at once")
	return cmd
}

func (o *logOptions) prepare(tailGiven bool) error {
	switch {
	case o.query.Container != "" && o.allContainers:
		return vedette.Errorf(vedette.Invalid, "-c names one container and --all-containers means all: leave one out")
	case o.since != 0 && o.query.SinceTime != "":
		return vedette.Errorf(vedette.Invalid, "--since and --since-time both say where the log begins: leave one out")
	case o.since < 0:
		return vedette.Errorf(vedette.Invalid, "--since is %v and must be above 0", o.since)
	case o.limitBytes < 0:
		return vedette.Errorf(vedette.Invalid, "--limit-bytes is %d and can't be negative", o.limitBytes)
	case o.tail < -1:
		return vedette.Errorf(vedette.Invalid, "--tail is %d and must be a number of lines, or -1 for all", o.tail)
	}
	if o.since > 0 {
		o.query.Since = o.since.String()
	}
	if o.Selector != "" && !tailGiven {
		o.tail = 10
	}
	if o.tail >= 0 {
		o.query.TailLines = &o.tail
	}
	return nil
}

// parsePods reads what logs are meant: a name alone is a pod's.
func (o *logOptions) parsePods(args []string) ([]target.Target, error) {
	switch {
	case len(args) == 0 && o.Selector == "":
		return nil, vedette.Errorf(vedette.Invalid, "say which logs are meant: POD, TYPE/NAME or -l SELECTOR")
	case len(args) == 0:
		args = []string{"pods"}
	case o.Selector != "":
		return nil, vedette.Errorf(vedette.Invalid, "the name %s and the selector -l exclude each other", args[0])
	case !strings.Contains(args[0], "/"):
		if len(args) == 2 && o.query.Container != "" {
			return nil, vedette.Errorf(vedette.Invalid, "-c and the argument %s both name a container: leave one out", args[1])
		}
		if len(args) == 2 {
			o.query.Container = args[1]
		}
		args = []string{"pod/" + args[0]}
	case len(args) == 2:
		o.query.Container, args = args[1], args[:1]
	}
	return o.Parse(args, nil)
}

// run finds the logs first, since what their lines look like depends on how many
// there are.
func (o *logOptions) run(cmd *cobra.Command, all []target.Target) error {
	fan, err := fanout.New(cmd, o.Account)
	if err != nil {
		return err
	}
	found := make(map[string][]client.LogQuery)
	var mu sync.Mutex
	fanOutErr := fan.ForEachAccount(cmd.Context(), func(ctx context.Context, run *fanout.Run) error {
		for _, t := range all {
			logs, err := o.findLogs(ctx, run, t)
			if err != nil {
				return err
			}
			mu.Lock()
			found[run.Account] = append(found[run.Account], logs...)
			mu.Unlock()
		}
		return nil
	})
	var summary fanout.FailedError
	if fanOutErr != nil && !errors.As(fanOutErr, &summary) {
		return fanOutErr
	}
	var logs []client.LogQuery
	for _, account := range fan.Accounts {
		logs = append(logs, found[account]...)
	}
	if o.query.Follow && len(logs) > o.maxLogRequests {
		return vedette.Errorf(vedette.Invalid, "these are %d logs, and %d may be followed at once: choose fewer, or raise --max-log-requests", len(logs), o.maxLogRequests)
	}
	if !o.prefixSet {
		o.prefix = len(logs) > 1
	}
	p := &output.LogPrinter{Client: fan.Client, Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr(), Prefix: o.prefix, Multiple: len(logs) > 1, LimitBytes: o.limitBytes}
	failed, err := p.Print(cmd.Context(), logs, o.query.Follow)
	summary.Failed, summary.Total = summary.Failed+failed, summary.Total+len(logs)
	switch {
	case err != nil:
		return err
	case summary.Failed > 0:
		return fanout.FailedError{Failed: summary.Failed, Total: max(summary.Total, summary.Failed)}
	}
	return nil
}
