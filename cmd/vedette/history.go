package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
)

func newRolloutHistory() *cobra.Command {
	var a aims
	cmd := &cobra.Command{Use: "history" + aimsUse, Short: "Show the revisions of a workload", RunE: func(cmd *cobra.Command, args []string) error {
		return a.named(cmd, args, func(ctx context.Context, h *hand, one aim) error {
			out, ok, err := h.must(ctx, "history of "+one.label(), one.on(vedette.VerbHistory))
			if !ok {
				return err
			}
			var revisions []vedette.Revision
			if err := json.Unmarshal(out.Result, &revisions); err != nil {
				return fmt.Errorf("read the history of %s: %w", one.label(), err)
			}
			h.say("%s", one.label())
			for _, line := range revisionLines(revisions) {
				h.say("%s", line)
			}
			return nil
		})
	}}
	a.flags(cmd)
	return cmd
}

func revisionLines(revisions []vedette.Revision) []string {
	l := &layout{status: -1}
	l.add([]string{"REVISION", "CURRENT", "NAME", "CHANGE-CAUSE"})
	for _, r := range revisions {
		l.add([]string{strconv.FormatInt(r.Number, 10), map[bool]string{true: "*"}[r.Current], r.Name, or(r.ChangeCause, "<none>")})
	}
	var lines []string
	for _, cells := range l.lines {
		lines = append(lines, l.format(cells, false))
	}
	return lines
}
