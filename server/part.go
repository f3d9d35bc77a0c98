package server

import (
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"
)

// part is a part of a server that runs until its context ends.
type part struct {
	name string
	run  func(context.Context) error
}

// runParts runs parts until ctx ends or one of them fails, which ends the others. It returns the first error when all have ended.
func runParts(ctx context.Context, log *slog.Logger, parts []part) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range parts {
		group.Go(func() error {
			err := p.run(ctx)
			log.Debug("a part of the server has ended", "part", p.name)
			return err
		})
	}
	return group.Wait()
}
