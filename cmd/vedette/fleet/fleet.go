package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/internal/version"
	"github.com/vedette-io/vedette/server/tables"
)

func newAccounts() *cobra.Command {
	var format listFormat
	cmd := &cobra.Command{
		Use:   "accounts [NAME|PATTERN]",
		Short: "List accounts, and how up to date each one is",
		Args:  cobra.MaximumNArgs(1),
		RunE: format.withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			accounts, err := c.AccountItems(cmd.Context(), strings.Join(args, ""))
			if err != nil {
				return err
			}
			if err := printList(cmd, format, accounts, accountLayout); err != nil || !format.isTable() {
				return err
			}
			notices := output.Notices{Out: cmd.ErrOrStderr()}
			for _, a := range accounts {
				addAccountError(&notices, a.Value.Name, a.Value.Message)
			}
			notices.Flush("see `vedette accounts -o yaml`")
			if len(args) > 0 {
				return nil
			}
			agents, err := c.AgentItems(cmd.Context(), "")
			if err != nil {
				return err
			}
			noteAbsentAccounts(cmd, accounts, agents)
			return nil
		}),
	}
	format.addFlag(cmd)
	cmd.AddCommand(newAcceptAccount(), newReleaseAccount(), newRemoveAccount())
	return cmd
}

// noteAbsentAccounts names the accounts that agents have and the server has not, because it refused them or because their clusters
// cannot be reached, and says where to see why.
func noteAbsentAccounts(cmd *cobra.Command, accounts []client.Item[client.Account], agents []client.Item[client.Agent]) {
	known := map[string]bool{}
	for _, a := range accounts {
		known[a.Value.Name] = true
	}
	var absent []string
	for _, agent := range agents {
		for _, account := range agent.Value.Accounts {
			if !known[account.Name] {
				known[account.Name] = true
				absent = append(absent, account.Name)
			}
		}
	}
	slices.Sort(absent)
	text := ""
	switch {
	case len(absent) > 0:
		text = fmt.Sprintf("Agents have %s that the server does not list (%s): `vedette agents` shows why.", output.Count(len(absent), "account"), nearest.List(absent))
	case len(accounts) > 0:
		return
	case len(agents) == 0:
		text = "No agent is connected."
	default:
		text = output.Count(len(agents), "agent") + " connected, but without accounts: see `vedette agents`."
	}
	fmt.Fprintln(cmd.ErrOrStderr(), output.Sanitize(text))
}

var accountLayout = listLayout[client.Account]{
	header: "NAME|STATUS|LAG|OBJECTS|FEEDS|AGENT|VERSION|CLUSTER", wideHeader: "SERVER|CLUSTER UID|VERIFIED|DRIFT|CONDITIONS",
	name: func(a client.Account) string { return a.Name },
	row: func(a client.Account) []string {
		return []string{a.Name, accountStatus(a), formatLag(a.LagMs), strconv.FormatInt(a.Objects, 10), feedCounts(a.Feeds),
			cmp.Or(a.Agent, "<none>"), cmp.Or(a.Cluster.Version, "<unknown>"), a.Cluster.Host, cmp.Or(a.Server, "<none>"),
			cmp.Or(a.Cluster.UID, "<unknown>"), formatAgo(a.Verified, time.Now()), strconv.FormatInt(a.DriftObjects, 10),
			formatConditions(a.Conditions, time.Now())}
	},
}

// formatConditions returns the conditions that do not hold, with their reasons and since when.
func formatConditions(conditions []client.Condition, now time.Time) string {
	var failing []string
	for _, c := range conditions {
		if c.Status == "False" {
			failing = append(failing, fmt.Sprintf("%s=False (%s, %s)", c.Type, c.Reason, tables.Age(now.Sub(c.Since))))
		}
	}
	return cmp.Or(strings.Join(failing, ", "), "<none>")
}

func accountStatus(a client.Account) string {
	switch {
	case a.Status != "":
		return a.Status
	case a.Agent == "":
		return "Orphaned"
	case a.Stale:
		return "Stale"
	default:
		return "Ready"
	}
}

func formatAgo(t *time.Time, now time.Time) string {
	if t == nil {
		return "<none>"
	}
	return tables.Age(now.Sub(*t)) + " ago"
}

func formatLag(ms *int64) string {
	switch {
	case ms == nil:
		return "<unknown>"
	case *ms < 1000:
		return strconv.FormatInt(*ms, 10) + "ms"
	default:
		return tables.Age(time.Duration(*ms) * time.Millisecond)
	}
}

// feedCounts returns "12/14 live, 1 denied, 1 failing".
func feedCounts(feeds map[string]int) string {
	total := 0
	var others []string
	for state, n := range feeds {
		total += n
		if state != "live" {
			others = append(others, fmt.Sprintf("%d %s", n, state))
		}
	}
	slices.Sort(others)
	return strings.Join(append([]string{fmt.Sprintf("%d/%d live", feeds["live"], total)}, others...), ", ")
}

func newAgents() *cobra.Command {
	var format listFormat
	cmd := &cobra.Command{
		Use:   "agents [ACCOUNT|PATTERN]",
		Short: "List connected agents and their accounts",
		Args:  cobra.MaximumNArgs(1),
		RunE: format.withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			agents, err := c.AgentItems(cmd.Context(), strings.Join(args, ""))
			if err != nil {
				return err
			}
			if err := printList(cmd, format, agents, newAgentLayout(time.Now())); err != nil || !format.isTable() {
				return err
			}
			printAccountErrors(cmd, agents)
			return nil
		}),
	}
	format.addFlag(cmd)
	return cmd
}

func newAgentLayout(now time.Time) listLayout[client.Agent] {
	return listLayout[client.Agent]{
		header: "ID|VERSION|SERVER|CACHER FOR|STANDBY FOR|REFUSED|LAST HEARTBEAT|AGE|CONFIG", wideHeader: "CONFIG AGE|HOSTNAME|ZONE",
		name: func(a client.Agent) string { return a.ID },
		row: func(a client.Agent) []string {
			roles := map[string][]string{}
			for _, account := range a.Accounts {
				roles[account.Role] = append(roles[account.Role], account.Name)
			}
			accountsWith := func(role string) string { return cmp.Or(strings.Join(roles[role], ","), "<none>") }
			config, configAge := describeConfig(a, now)
			return []string{a.ID, a.Version, a.Server, accountsWith("cacher"), accountsWith("standby"), accountsWith("refused"),
				ageText(a.LastPulse, now), ageText(a.Connected, now), config, configAge, a.Hostname, cmp.Or(a.ZoneID, "<none>")}
		},
	}
}

// ageText returns how long ago something was; an agent that has just connected has sent no heartbeat.
func ageText(t, now time.Time) string {
	if t.IsZero() {
		return "<none>"
	}
	return tables.Age(now.Sub(t))
}

// describeConfig returns the state of an agent's configuration, and since when it is in effect.
func describeConfig(a client.Agent, now time.Time) (state, age string) {
	for _, c := range a.Conditions {
		if c.Type == "ConfigCurrent" {
			return c.Reason, tables.Age(now.Sub(c.Since))
		}
	}
	return "<none>", "<none>" // an agent of an earlier version
}

// printAccountErrors prints what prevents accounts from being reported, and configurations that are
// not in effect.
func printAccountErrors(cmd *cobra.Command, agents []client.Item[client.Agent]) {
	notices := output.Notices{Out: cmd.ErrOrStderr()}
	for _, a := range agents {
		addAccountError(&notices, "agent "+a.Value.ID, a.Value.Message)
		for _, c := range a.Value.Conditions {
			if c.Status == "False" {
				addAccountError(&notices, "agent "+a.Value.ID, c.Message)
			}
		}
		for _, account := range a.Value.Accounts {
			addAccountError(&notices, account.Name, account.Message)
		}
	}
	notices.Flush("see `vedette agents -o yaml`")
}

func addAccountError(notices *output.Notices, account, message string) {
	if message != "" {
		notices.Add(account+": "+message, account+": "+message)
	}
}

func newFeeds() *cobra.Command {
	var kind, account string
	var format listFormat
	cmd := &cobra.Command{
		Use:   "feeds [ACCOUNT|PATTERN]",
		Short: "List feeds, and how up to date each one is",
		Args:  cobra.MaximumNArgs(1),
		RunE: format.withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			if account != "" && len(args) > 0 {
				return vedette.Errorf(vedette.Invalid, "the argument %s and --account exclude each other", args[0])
			}
			feeds, err := c.FeedItems(cmd.Context(), cmp.Or(account, strings.Join(args, "")), kind)
			if err != nil {
				return err
			}
			return printList(cmd, format, feeds, newFeedLayout(time.Now()))
		}),
	}
	cmd.Flags().StringVar(&kind, "kind", "", "Comma-separated kinds.")
	cmd.Flags().StringVar(&account, "account", "", "Account, pattern of accounts (prod-*), or comma-separated accounts. The same as the argument.")
	format.addFlag(cmd)
	return cmd
}

func newFeedLayout(now time.Time) listLayout[client.Feed] {
	return listLayout[client.Feed]{
		header: "ACCOUNT|KIND|NAMESPACE|STATE|LAG|OBJECTS|MESSAGE", wideHeader: "SYNCED|VERIFIED|DRIFT",
		name: func(f client.Feed) string { return f.Account + "/" + f.Kind + "/" + cmp.Or(f.Namespace, "_") },
		row: func(f client.Feed) []string {
			state := f.State
			if f.Stale && f.State == "live" {
				state = "stale"
			}
			return []string{f.Account, f.Kind, cmp.Or(f.Namespace, "<all>"), state, formatLag(f.LagMs), strconv.FormatInt(f.Objects, 10),
				f.Message, formatAgo(f.Synced, now), formatAgo(f.Verified, now), strconv.FormatInt(f.DriftObjects, 10)}
		},
	}
}

func newVersion() *cobra.Command {
	var clientOnly bool
	format := ""
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the client and of the server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.CheckFormat(format, "json", "yaml"); err != nil {
				return err
			}
			versions := map[string]string{"clientVersion": version.String()}
			var err error
			if !clientOnly {
				err = addServerVersion(cmd, versions)
			}
			return errors.Join(printVersions(cmd, versions, format), err)
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Print the version of the client only.")
	cmd.Flags().StringVarP(&format, "output", "o", "", "Output format: json or yaml. Defaults to text.")
	return cmd
}

// addServerVersion asks the server for its version.
func addServerVersion(cmd *cobra.Command, versions map[string]string) error {
	c, err := connect.Client(cmd)
	if err != nil {
		return err
	}
	server, err := c.Version(cmd.Context())
	if err == nil {
		versions["serverVersion"], versions["server"] = server, c.Server()
	}
	return err
}

func printVersions(cmd *cobra.Command, versions map[string]string, format string) error {
	if format != "" {
		return printDocument(cmd, versions, format)
	}
	out := output.NewPrinter(cmd.OutOrStdout())
	out.Line("vedette " + versions["clientVersion"])
	if server, known := versions["serverVersion"]; known {
		out.Line("server  " + server + " at " + versions["server"])
	}
	return out.Flush()
}
