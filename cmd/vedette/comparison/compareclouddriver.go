package comparison

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/compare"
)

const compareLong = `Ask a Clouddriver and a Vedette server the same questions, and print how the answers differ.

The command finds out which Kubernetes accounts both servers know, what these accounts
hold, and asks both what Gate, Orca, Deck and Fiat ask about it. It only reads: it sends
nothing but GET requests. Lists are compared as sets. Differences are grouped by the form
of the path and by the field, with one example each; values that may be secret are shown
as ***. Differences that are intended are accepted, each with its reason.

Clouddriver shows a change up to a minute after it happened. So what differs is asked again
after --recheck, and only what differs then is reported.

With --recording, Clouddriver's answers come from a file: clouddriver.jsonl in the
directory, one answer {"path", "status", "body"} on each line.

The command ends with 1 if an answer differs otherwise than accepted.`

const compareExample = `  vedette compare-clouddriver --clouddriver http://spin-clouddriver:7002 --vedette http://vedette:7002
  vedette compare-clouddriver --clouddriver http://localhost:7002 --vedette http://localhost:7102 --account 'prod-*' --limit 0
  vedette compare-clouddriver --recording recordings/today --vedette http://localhost:7002 -o json`

// compareOptions are the flags of vedette compare-clouddriver.
type compareOptions struct {
	clouddriver, vedette, recording string

	scope    compare.Scope
	limit    int
	parallel int
	recheck  time.Duration
	accepted string
	format   string
	all      bool
}

func newCompareClouddriver() *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:     "compare-clouddriver",
		Short:   "Compare a server's answers with those of a Clouddriver",
		Long:    compareLong,
		Example: compareExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return compareClouddriver(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.clouddriver, "clouddriver", "", "URL of the Clouddriver.")
	f.StringVar(&o.vedette, "vedette", "", "URL of the Vedette server. Defaults to --server.")
	f.StringVar(&o.recording, "recording", "", "Directory of recorded answers, instead of --clouddriver.")
	f.StringSliceVar(&o.scope.Accounts, "account", nil, "Comma-separated accounts or patterns of accounts (prod-*). Defaults to all that both know.")
	f.StringSliceVar(&o.scope.Applications, "application", nil, "Comma-separated applications or patterns of applications. Defaults to all.")
	f.IntVar(&o.limit, "limit", 200, "Number of requests of each form, spread over all accounts and applications. 0 for all.")
	f.IntVar(&o.parallel, "parallel", 4, "Number of requests at a time.")
	f.DurationVar(&o.recheck, "recheck", 40*time.Second, "Time after which what differs is asked again. 0 to ask once.")
	f.StringVar(&o.accepted, "accepted", "", "File of further accepted differences: a YAML list of form, field and reason.")
	f.StringVarP(&o.format, "output", "o", "", "Output format: json.")
	f.BoolVar(&o.all, "all", false, "Print forms without differences too.")
	return cmd
}

func (o compareOptions) validate() error {
	switch {
	case o.clouddriver == "" && o.recording == "":
		return vedette.Errorf(vedette.Invalid, "nothing to compare with: use --clouddriver URL or --recording DIR")
	case o.clouddriver != "" && o.recording != "":
		return vedette.Errorf(vedette.Invalid, "--clouddriver and --recording exclude each other")
	case o.parallel < 1 || o.parallel > 16:
		return vedette.Errorf(vedette.Invalid, "invalid --parallel %d: must be between 1 and 16", o.parallel)
	case o.limit < 0:
		return vedette.Errorf(vedette.Invalid, "invalid --limit %d: must not be negative", o.limit)
	}
	return output.CheckFormat(o.format, "json")
}

func compareClouddriver(cmd *cobra.Command, o compareOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	rules, err := o.rules()
	if err != nil {
		return err
	}
	vedetteClient, err := connect.Client(cmd)
	if err != nil {
		return err
	}
	header := spinnakerHeader(vedetteClient)
	server, err := o.vedetteServer(vedetteClient, header)
	if err != nil {
		return err
	}
	c := comparison{compareOptions: o, cmd: cmd, vedette: server, options: compare.Options{Rules: rules, Parallel: o.parallel}}
	report, err := c.run(cmd.Context(), header)
	if err != nil {
		return err
	}
	return c.print(report)
}

// rules returns the accepted differences: the user's first, because the first that matches counts.
func (o compareOptions) rules() (compare.Rules, error) {
	rules, err := compare.AcceptedRules()
	if err != nil || o.accepted == "" {
		return rules, err
	}
	text, err := os.ReadFile(o.accepted)
	if err != nil {
		return nil, fmt.Errorf("read accepted differences: %w", err)
	}
	own, err := compare.ParseRules(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.accepted, err)
	}
	return append(own, rules...), nil
}

// vedetteServer returns the server to compare with: that of --vedette, or else the one that other
// commands use, with its certificates and its token.
func (o compareOptions) vedetteServer(c *client.Client, header http.Header) (*compare.Server, error) {
	if o.vedette != "" {
		return compare.NewServer("vedette", o.vedette, header)
	}
	server, err := compare.NewServer("vedette", c.Server(), header)
	if err == nil {
		server.SetTransport(c.Transport())
	}
	return server, err
}

// spinnakerHeader returns the headers by which Spinnaker's services name the user.
func spinnakerHeader(c *client.Client) http.Header {
	header := http.Header{"User-Agent": {"vedette"}}
	for name, value := range map[string]string{"X-SPINNAKER-USER": c.User, "X-SPINNAKER-ACCOUNTS": c.UserAccounts} {
		if value != "" {
			header.Set(name, value)
		}
	}
	return header
}

// comparison is one run of the command.
type comparison struct {
	compareOptions
	cmd     *cobra.Command
	vedette *compare.Server
	options compare.Options
}

func (c *comparison) run(ctx context.Context, header http.Header) (*compare.Report, error) {
	if c.recording != "" {
		recording, err := readAnswers(c.recording)
		if err != nil {
			return nil, err
		}
		return compare.Run(ctx, recording, c.vedette, recording.Paths, c.options)
	}
	clouddriver, err := compare.NewServer("clouddriver", c.clouddriver, header)
	if err != nil {
		return nil, err
	}
	inventory, err := compare.Discover(ctx, clouddriver, c.vedette, c.scope, c.parallel)
	if err != nil {
		return nil, err
	}
	c.options.HiddenAccounts = inventory.Others
	paths, omitted := inventory.Paths(c.limit)
	c.note("Comparing %s by %s.", output.Count(len(inventory.Accounts), "account"), output.Count(len(paths), "request"))
	if omitted > 0 {
		c.note("%s left out: use --limit 0 to send all.", output.Count(omitted, "request"))
	}
	report, err := compare.Run(ctx, clouddriver, c.vedette, paths, c.options)
	if err != nil || c.recheck <= 0 || len(report.Differing()) == 0 {
		return report, err
	}
	c.note("%s differ. Asking again in %s.", output.Count(len(report.Differing()), "answer"), c.recheck)
	return compare.Recheck(ctx, clouddriver, c.vedette, report, c.recheck, c.options)
}

// note tells on stderr what the command does.
func (c *comparison) note(format string, args ...any) {
	fmt.Fprintf(c.cmd.ErrOrStderr(), format+"\n", args...)
}

func readAnswers(dir string) (*compare.Recording, error) {
	file, err := os.Open(filepath.Join(dir, "clouddriver.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	defer file.Close()
	recording, err := compare.ReadRecording(file)
	if err != nil {
		return nil, fmt.Errorf("read the recording %s: %w", file.Name(), err)
	}
	return recording, nil
}

func (c *comparison) print(report *compare.Report) error {
	var err error
	if c.format == "json" {
		err = report.PrintJSON(c.cmd.OutOrStdout())
	} else {
		err = report.Print(c.cmd.OutOrStdout(), !c.all)
	}
	if err != nil || report.OK() {
		return err
	}
	return fmt.Errorf("%d of %s differ, and %d could not be compared", report.Different, output.Count(report.Total, "answer"), report.Failed)
}
