package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// writeChecksums writes the digests of all files in the format of sha256sum, and their signature if there is a key.
func (b *build) writeChecksums(context.Context) error {
	if err := os.RemoveAll(filepath.Join(b.out, "bin")); err != nil {
		return err
	}
	names, err := released(b.out)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, name := range names {
		sum, err := fileDigest(filepath.Join(b.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, name)
	}
	if err := os.WriteFile(filepath.Join(b.out, checksumFile), sums.Bytes(), 0o644); err != nil {
		return err
	}
	if b.key == "" {
		return nil
	}
	key, err := readPrivateKey(b.key)
	if err != nil {
		return err
	}
	signature, err := sign(key, sums.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.out, signatureFile), []byte(signature+"\n"), 0o644)
}

// report prints what was made.
func (b *build) report() error {
	sums, err := os.ReadFile(filepath.Join(b.out, checksumFile))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		info, err := os.Stat(filepath.Join(b.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%.1f MB\t%s\n", name, float64(info.Size())/1e6, sum)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if b.key == "" {
		fmt.Println("Nothing is signed: --key was not given.")
	}
	return nil
}
