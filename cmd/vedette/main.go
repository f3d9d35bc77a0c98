// Command vedette is the command line of Vedette: it shows and changes objects in many
// clusters, as kubectl does in one.
package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newRoot().ExecuteContext(ctx)
	var summary fanout.FailedError
	switch {
	case err == nil:
	case errors.As(err, &summary): // each failure was printed when it happened
		if summary.Total > 1 {
			fmt.Fprintln(os.Stderr, summary)
		}
		os.Exit(1)
	case errors.Is(err, context.Canceled):
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
