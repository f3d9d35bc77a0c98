package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/version"
	"github.com/vedette-io/vedette/server/views"
)

// show prints a table with heads.
func show(cmd *cobra.Command, heads string, rows [][]string) error {
	out := newPrinter(cmd.OutOrStdout())
	if len(rows) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "No resources found.")
		return nil
	}
	l := &layout{status: -1}
	l.add(strings.Split(heads, "|"))
	l.status = slices.Index(l.lines[0], "STATUS")
	for _, cells := range rows {
		l.add(cells)
	}
	out.table(l)
	return out.flush()
}

func newAccounts() *cobra.Command {
	return &cobra.Command{
		Use:   "accounts [NAME|PATTERN]",
		Short: "Show the clusters, and how far each is stored",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect(cmd)
			if err != nil {
				return err
			}
			accounts, err := c.Accounts(cmd.Context(), strings.Join(args, ""))
			if err != nil {
				return err
			}
			var rows [][]string
			for _, a := range accounts {
				rows = append(rows, []string{a.Name, accountStatus(a), lag(a.LagMs), strconv.FormatInt(a.Objects, 10), feedCounts(a.Feeds),
					or(a.Agent, "<none>"), or(a.Cluster.Version, "<unknown>"), a.Cluster.Host})
			}
			if err := show(cmd, "NAME|STATUS|LAG|OBJECTS|FEEDS|AGENT|VERSION|CLUSTER", rows); err != nil {
				return err
			}
			for _, a := range accounts {
				tellTrouble(cmd, a.Name, a.Message)
			}
			return nil
		},
	}
}

func accountStatus(a client.Account) string {
	switch {
	case a.Agent == "":
		return "Orphaned"
	case a.Stale:
		return "Stale"
	default:
		return "Ready"
	}
}

func lag(ms *int64) string {
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

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

func newAgents() *cobra.Command {
	return &cobra.Command{
		Use:   "agents [ACCOUNT|PATTERN]",
		Short: "Show the agents that are connected, and what each does",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect(cmd)
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
				rows = append(rows, []string{a.ID, a.Version, a.Server, or(strings.Join(roles["cacher"], ","), "<none>"),
					or(strings.Join(roles["standby"], ","), "<none>"), or(strings.Join(roles["refused"], ","), "<none>"),
					views.Age(now.Sub(a.LastPulse)), views.Age(now.Sub(a.Connected))})
			}
			if err := show(cmd, "ID|VERSION|SERVER|REPORTS|STANDS BY|REFUSED|LAST PULSE|AGE", rows); err != nil {
				return err
			}
			tellTroubles(cmd, agents)
			return nil
		},
	}
}

// tellTroubles says what keeps accounts from being reported.
func tellTroubles(cmd *cobra.Command, agents []client.Agent) {
	for _, a := range agents {
		for _, account := range a.Accounts {
			tellTrouble(cmd, account.Name, account.Message)
		}
	}
}

func tellTrouble(cmd *cobra.Command, account, message string) {
	if message != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", account, message)
	}
}

func newFeeds() *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:   "feeds [ACCOUNT|PATTERN]",
		Short: "Show how far each kind of each cluster is stored",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect(cmd)
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
				rows = append(rows, []string{f.Account, f.Kind, or(f.Namespace, "<all>"), state, lag(f.LagMs), strconv.FormatInt(f.Objects, 10), f.Message})
			}
			return show(cmd, "ACCOUNT|KIND|NAMESPACE|STATE|LAG|OBJECTS|MESSAGE", rows)
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "only these kinds, joined by commas")
	return cmd
}

func newVersion() *cobra.Command {
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this tool and of the server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), "vedette "+version.String())
			if clientOnly {
				return nil
			}
			c, err := connect(cmd)
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
	cmd.Flags().BoolVar(&clientOnly, "client", false, "do not ask the server")
	return cmd
}
