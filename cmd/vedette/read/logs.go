package read

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/operationjson"
)

const logsLong = `Print the logs of containers in a pod, in all pods of a workload, or in pods that match
a label selector, in one or more clusters.

If there are several logs, each line begins with its account, pod and container. With -f
the logs are followed together; without it they are printed one after the other.`

const logsExample = `  vedette logs web-6c9f4-aaaaa -n shop
  vedette logs deployment/web -n shop --account 'prod-*' -f --since 10m
  vedette logs -l app=web --all-containers --tail 20`

type logOptions struct {
	target.Flags
	query          client.LogQuery
	allContainers  bool
	tail           int64
	since          time.Duration
	sinceTime      string
	prefix         bool
	prefixSet      bool // --prefix or --all-pods was given
	allPods        bool
	limitBytes     int64 // for each log; 0 for no limit
	maxLogRequests int
}

func newLogs() *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:     "logs POD | TYPE/NAME | ACCOUNT/pod/NAMESPACE/NAME | -l SELECTOR",
		Short:   "Print the logs of containers in one or more clusters",
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
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "Namespace of the pods. Defaults to the namespace of the context, then to default.")
	flags.StringVarP(&o.Selector, "selector", "l", "", "Label selector of the pods (app=web,tier!=db).")
	flags.BoolVarP(&o.query.Follow, "follow", "f", false, "Follow the logs.")
	flags.StringVarP(&o.query.Container, "container", "c", "", "Container. Defaults to the pod's default container.")
	flags.BoolVar(&o.allContainers, "all-containers", false, "Print the logs of all containers, including init containers.")
	flags.BoolVarP(&o.query.Previous, "previous", "p", false, "Print the logs of the container before its last restart.")
	flags.Int64Var(&o.tail, "tail", -1, "Number of lines from the end of each log. -1 for all. Defaults to 10 with -l.")
	flags.DurationVar(&o.since, "since", 0, "Print only lines newer than a duration (5s, 2m, 3h).")
	flags.StringVar(&o.sinceTime, "since-time", "", "Print only lines after a time (2026-01-31T12:00:00Z).")
	flags.BoolVar(&o.query.Timestamps, "timestamps", false, "Begin each line with its time.")
	flags.BoolVar(&o.prefix, "prefix", false,
		"Begin each line with its account, pod and container. Defaults to true if there are several logs.")
	flags.BoolVar(&o.allPods, "all-pods", false, "Print the logs of all pods of a workload with --prefix. All pods is the default.")
	flags.Int64Var(&o.limitBytes, "limit-bytes", 0, "Maximum number of bytes of each log. 0 for no limit.")
	flags.IntVar(&o.maxLogRequests, "max-log-requests", 50, "Maximum number of logs to follow at once.")
	return cmd
}

func (o *logOptions) prepare(tailGiven bool) error {
	switch {
	case o.query.Container != "" && o.allContainers:
		return vedette.Errorf(vedette.Invalid, "-c and --all-containers exclude each other")
	case o.since != 0 && o.sinceTime != "":
		return vedette.Errorf(vedette.Invalid, "--since and --since-time exclude each other")
	case o.since < 0:
		return vedette.Errorf(vedette.Invalid, "invalid --since %v: must be greater than 0", o.since)
	case o.limitBytes < 0:
		return vedette.Errorf(vedette.Invalid, "invalid --limit-bytes %d: must not be negative", o.limitBytes)
	case o.tail < -1:
		return vedette.Errorf(vedette.Invalid, "invalid --tail %d: must be a number of lines, or -1 for all", o.tail)
	}
	if o.since > 0 {
		seconds := operationjson.RoundUp(o.since)
		o.query.SinceSeconds = &seconds
	}
	if o.sinceTime != "" {
		var err error
		o.query.SinceTime, err = time.Parse(time.RFC3339, o.sinceTime)
		if err != nil {
			return vedette.Errorf(vedette.Invalid, "invalid --since-time %q: must be a time, for example 2026-01-31T12:00:00Z", o.sinceTime)
		}
	}
	if o.Selector != "" && !tailGiven {
		o.tail = 10
	}
	if o.tail >= 0 {
		o.query.TailLines = &o.tail
	}
	return nil
}

// parsePods parses the arguments. A name without a type is the name of a pod.
func (o *logOptions) parsePods(args []string) ([]target.Target, error) {
	switch {
	case len(args) == 0 && o.Selector == "":
		return nil, vedette.Errorf(vedette.Invalid, "no logs selected: use POD, TYPE/NAME or -l SELECTOR")
	case len(args) == 0:
		args = []string{"pods"}
	case o.Selector != "":
		return nil, vedette.Errorf(vedette.Invalid, "the name %s and the selector -l exclude each other", args[0])
	case !strings.Contains(args[0], "/"):
		if len(args) == 2 && o.query.Container != "" {
			return nil, vedette.Errorf(vedette.Invalid, "-c cannot be combined with the argument %s: both name a container", args[1])
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

// run finds all logs before it prints any, because lines have a prefix only if there are
// several logs.
func (o *logOptions) run(cmd *cobra.Command, all []target.Target) error {
	fan, err := fanout.New(cmd, o.Account)
	if err != nil {
		return err
	}
	found, fanOutErr := fanout.Collect(cmd.Context(), fan, func(ctx context.Context, run *fanout.Run) (logs []client.LogQuery, err error) {
		for _, t := range all {
			more, err := o.findLogs(ctx, run, t)
			if err != nil {
				return logs, err
			}
			logs = append(logs, more...)
		}
		return logs, nil
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
		return vedette.Errorf(vedette.Invalid, "cannot follow %d logs at once, the limit is %d: select fewer pods, or raise --max-log-requests",
			len(logs), o.maxLogRequests)
	}
	if !o.prefixSet {
		o.prefix = len(logs) > 1
	}
	p := &output.LogPrinter{Client: fan.Client, Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr(), Prefix: o.prefix, Multiple: len(logs) > 1,
		LimitBytes: o.limitBytes}
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
