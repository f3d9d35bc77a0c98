package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// here is the platform of this machine.
const here = runtime.GOOS + "/" + runtime.GOARCH

// manPages returns the manual pages of a program, by their paths below /usr/share/man.
func (b *build) manPages(ctx context.Context, name string) (map[string][]byte, error) {
	bin, err := b.runnable(name)
	if err != nil {
		return nil, err
	}
	if isService(name) {
		page, err := exec.CommandContext(ctx, bin.path, "man", b.time.Format(time.DateOnly)).Output()
		if err != nil {
			return nil, fmt.Errorf("%s man: %w", name, err)
		}
		return map[string][]byte{"man8/" + name + ".8": page}, nil
	}
	directory, err := os.MkdirTemp(b.out, ".man")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	out, err := exec.CommandContext(ctx, bin.path, "man", directory, "--date", b.time.Format(time.DateOnly)).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s man: %w: %s", name, err, out)
	}
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	for _, entry := range entries {
		if pages["man1/"+entry.Name()], err = os.ReadFile(filepath.Join(directory, entry.Name())); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// compressed returns a page as packages have it. The format has a time and a name, which stay empty.
func compressed(page []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(page); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// runnable returns a program for this machine.
func (b *build) runnable(name string) (binary, error) {
	i := slices.IndexFunc(b.binaries, func(bin binary) bool { return bin.program.name == name && bin.os+"/"+bin.arch == here })
	if i < 0 {
		return binary{}, fmt.Errorf("completions and manual pages are printed by %s for %s, which is not among --platforms: add it", name, here)
	}
	return b.binaries[i], nil
}
