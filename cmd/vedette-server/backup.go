package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/vedette-io/vedette/server/config"
	"github.com/vedette-io/vedette/server/store/backup"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// stream is the argument that stands for standard output, or standard input.
const stream = "-"

// runBackup is the command backup.
func runBackup(ctx context.Context, cfg *config.Config, args []string, _, errOut io.Writer) error {
	path, file, err := backupArguments(cfg, "backup", args)
	if err != nil {
		return err
	}
	var size int64
	if file == stream {
		if isDevice(os.Stdout) {
			return fmt.Errorf("backup: standard output is a terminal or another device: write to a file, as in `vedette-server backup - > vedette.db`")
		}
		size, err = backup.Stream(ctx, path, os.Stdout) // not a writer for text
	} else {
		size, err = backup.Write(ctx, path, file)
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	fmt.Fprintf(errOut, "backed up %s: %d bytes\n", path, size)
	return nil
}

// runRestore is the command restore.
func runRestore(ctx context.Context, cfg *config.Config, args []string, _, errOut io.Writer) error {
	path, file, err := backupArguments(cfg, "restore", args)
	if err != nil {
		return err
	}
	var size int64
	if file == stream {
		if isDevice(os.Stdin) { // which would change bytes, as with kubectl attach -it
			return fmt.Errorf("restore: standard input is a terminal or another device: read from a file, as in `vedette-server restore - < vedette.db`")
		}
		var from io.Reader
		if from, err = afterFirstByte(ctx, os.Stdin); err == nil {
			size, err = backup.Restore(ctx, path, from)
		}
	} else {
		size, err = backup.RestoreFile(ctx, path, file)
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	fmt.Fprintf(errOut, "restored %s: %d bytes\n", path, size)
	return nil
}

// afterFirstByte waits until input begins. In a container, whoever sends it (kubectl attach) is there only then, and would neither see
// why nothing is restored, nor find a container that runs, if the program had ended before.
func afterFirstByte(ctx context.Context, input io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(input)
	begun := make(chan struct{})
	go func() {
		_, _ = buffered.Peek(1) // the next read has the same error
		close(begun)
	}()
	select {
	case <-begun:
		return buffered, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// backupArguments returns the file of the database and the one that the arguments name.
func backupArguments(cfg *config.Config, command string, args []string) (path, file string, err error) {
	if len(args) != 1 {
		return "", "", fmt.Errorf("%s needs one argument, the file of the backup, or - : got %d", command, len(args))
	}
	path, isSQLite := sqldb.FilePath(cfg.Database().Reveal())
	if !isSQLite {
		return "", "", fmt.Errorf("%s is for SQLite, and the database is %s: use pg_dump or mariadb-dump and their counterparts, as docs/backup.md shows", command, cfg.Database())
	}
	return path, args[0], nil
}

func isDevice(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
