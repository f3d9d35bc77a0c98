// Command vedette is the command line of Vedette: it shows and changes objects in many
// clusters, as kubectl does in one. The packages below it have the commands, by families (docs/decisions/0168).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/vedette-io/vedette/internal/cli/exit"
	"github.com/vedette-io/vedette/internal/cli/fanout"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends the program at once
	root := newRoot()
	err := execute(ctx, root)
	var summary fanout.FailedError
	var exitErr exit.Error
	switch {
	case err == nil:
	case errors.As(err, &exitErr):
		if exitErr.Err != nil {
			fmt.Fprintln(root.ErrOrStderr(), "Error:", exitErr.Err)
		}
		os.Exit(exitErr.Code)
	case errors.As(err, &summary): // each failure was printed when it happened
		if summary.Total > 1 {
			fmt.Fprintln(root.ErrOrStderr(), summary)
		}
		os.Exit(1)
	case errors.Is(err, context.Canceled):
		os.Exit(130)
	default:
		fmt.Fprintln(root.ErrOrStderr(), "Error:", err)
		os.Exit(1)
	}
}
