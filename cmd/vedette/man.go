package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/manpage"
)

// addManPages adds the command by which a release gets its manual pages. Users have them already, so help does not show it.
func addManPages(root *cobra.Command) {
	date := ""
	cmd := &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write the manual pages",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := time.Parse(time.DateOnly, date); err != nil {
				return vedette.Errorf(vedette.Invalid, "--date must be a date such as 2026-11-27")
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			for _, page := range manpage.Pages(root, date) {
				if err := os.WriteFile(filepath.Join(args[0], page.Name), []byte(page.Text), 0o644); err != nil {
					return fmt.Errorf("write manual pages: %w", err)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&date, "date", "", "Date that the pages show, such as 2026-11-27.")
	root.AddCommand(cmd)
}
