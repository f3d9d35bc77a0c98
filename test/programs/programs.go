// Package programs builds our programs for tests that run them as processes.
package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	// go test keeps the results of packages that have not changed. By these imports, tests of programs run again when what
	// the programs consist of has changed.
	_ "github.com/vedette-io/vedette/agent"
	_ "github.com/vedette-io/vedette/agent/config"
	_ "github.com/vedette-io/vedette/internal/client"
	_ "github.com/vedette-io/vedette/internal/program"
	_ "github.com/vedette-io/vedette/server"
	_ "github.com/vedette-io/vedette/server/config"
)

// Build builds programs, for example "vedette-agent", into a directory. Its flags are those of
// `make build`, so that the packages are compiled already when `make test` runs the tests, and no
// program has the race detector, which needs memory and keeps copies. The version of the programs
// is dev, in every clone.
func Build(ctx context.Context, dir string, names ...string) error {
	return BuildWith(ctx, dir, nil, names...)
}

// BuildWith is Build with further flags of `go build`.
func BuildWith(ctx context.Context, dir string, flags []string, names ...string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace,disable_grpc_modules", "-ldflags", "-s -w",
		"-o", dir + string(filepath.Separator)}, flags...)
	for _, name := range names {
		args = append(args, "github.com/vedette-io/vedette/cmd/"+name)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %q: %w\n%s", names, err, out)
	}
	return nil
}
