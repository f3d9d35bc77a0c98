//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/vedette-io/vedette/test/controlplane"
)

func runBuild(ctx context.Context, args []string, out, log io.Writer) error {
	if err := parse(newFlags("build", log), args); err != nil {
		return err
	}
	binaries, err := controlplane.Build(ctx, log)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(binaries)) {
		fmt.Fprintln(out, binaries[name])
	}
	return nil
}
