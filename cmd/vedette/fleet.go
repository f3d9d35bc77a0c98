package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/internal/cli/connect"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/version"
	"github.com/vedette-io/vedette/server/views"
)

func newAccounts() *cobra.Command {
	return &cobra.Command{
		Use:   "accounts [NAME|PATTERN]",
		Short: "List accounts, and how up to date each one is",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect.Client(cmd)
			if err != nil {
				return err
			}
			accounts, err := c.Accounts(cmd.Context(), strings.Join(args, ""))
			if err != nil {
				return err
			}
			var rows [][]string
			for _, a := range accounts {
				rows = append(rows, []string{a.Name, accountStatus(a), formatLag(a.LagMs), strconv.FormatInt(a.Objects, 10), feedCounts(a.Feeds),
					cmp.Or(a.Agent, "<none>"), cmp.Or(a.Cluster.Version, "<unknown>"), a.Cluster.Host})
			}
			if err := output.PrintTable(cmd.OutOrStdout(), cmd.ErrOrStderr(), "NAME|STATUS|LAG|OBJECTS|FEEDS|AGENT|VERSION|CLUSTER",
				rows); err != nil {
				return err
			}
			for _, a := range accounts {
				printAccountError(cmd, a.Name, a.Message)
			}
			return nil
		},
	}
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

func formatLag(ms *int64) string {
	switch {
	case ms == nil:
		return "<unknown>"
	case *ms < 1000:
		return strconv.FormatInt(*ms, 10) + "ms"
	default:
		return views.Age(time.Duration(*ms) * time.Millisecond)
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
	return &cobra.Command{
		Use:   "agents [ACCOUNT|PATTERN]",
		Short: "List connected agents and their accounts",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect.Client(cmd)
			if err != nil {
				return err
			}
			agents, err := c.Agents(cmd.Context(), strings.Join(args, ""))
			if err != nil {
				return err
			}
			now := time.Now()
			var rows [][]string
			for _, a := range agents {
				roles := map[string][]string{}
				for _, account := range a.Accounts {
					roles[account.Role] = append(roles[account.Role], account.Name)
				}
				rows = append(rows, []string{a.ID, a.Version, a.Server, cmp.Or(strings.Join(roles["cacher"], ","), "<none>"),
					cmp.Or(strings.Join(roles["standby"], ","), "<none>"), cmp.Or(strings.Join(roles["refused"], ","), "<none>"),
					views.Age(now.Sub(a.LastPulse)), views.Age(now.Sub(a.Connected))})
			}
			if err := output.PrintTable(cmd.OutOrStdout(), cmd.ErrOrStderr(), "ID|VERSION|SERVER|CACHER FOR|STANDBY FOR|REFUSED|LAST HEARTBEAT|AGE",
				rows); err != nil {
				return err
			}
			printAccountErrors(cmd, agents)
			return nil
		},
	}
}

// printAccountErrors prints what prevents accounts from being reported.
func printAccountErrors(cmd *cobra.Command, agents []client.Agent) {
	for _, a := range agents {
		printAccountError(cmd, "agent "+a.ID, a.Message)
		for _, account := range a.Accounts {
			printAccountError(cmd, account.Name, account.Message)
		}
	}
}

func printAccountError(cmd *cobra.Command, account, message string) {
	if message != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", account, message)
	}
}

func newFeeds() *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:   "feeds [ACCOUNT|PATTERN]",
		Short: "List feeds, and how up to date each one is",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect.Client(cmd)
			if err != nil {
				return err
			}
			feeds, err := c.Feeds(cmd.Context(), strings.Join(args, ""), kind)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, f := range feeds {
				state := f.State
				if f.Stale && f.State == "live" {
					state = "stale"
				}
				rows = append(rows, []string{f.Account, f.Kind, cmp.Or(f.Namespace, "<all>"), state, formatLag(f.LagMs),
					strconv.FormatInt(f.Objects, 10), f.Message})
			}
			return output.PrintTable(cmd.OutOrStdout(), cmd.ErrOrStderr(), "ACCOUNT|KIND|NAMESPACE|STATE|LAG|OBJECTS|MESSAGE", rows)
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "Comma-separated kinds.")
	return cmd
}

func newVersion() *cobra.Command {
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the client and of the server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), "vedette "+version.String())
			if clientOnly {
				return nil
			}
			c, err := connect.Client(cmd)
			if err != nil {
				return err
			}
			server, err := c.Version(cmd.Context())
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "server  %s at %s\n", server, c.Server())
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Print the version of the client only.")
	return cmd
}
