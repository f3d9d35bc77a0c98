package artifacts

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// packLimits bound what unpacking costs. go-git holds an object in memory while it unpacks it, and
// several copies of one that is stored as a difference: a pack of 600 KB took 5.8 GB. The sizes
// that a pack announces are therefore checked before go-git sees it.
type packLimits struct {
	bytes       int64 // of the pack
	objectBytes int64 // of one object
}

const (
	// maxPackObjects bounds the index of a pack, which is in memory. Linux has 100,000 files.
	maxPackObjects = 2_000_000
	// expansion is how many times larger than an artifact the content of a repository may be.
	expansion = 8
)

// savePack writes a pack to a file and checks it.
func savePack(ctx context.Context, path string, pack io.Reader, limits packLimits) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("save what the server sent: %w", err)
	}
	n, err := io.Copy(file, io.LimitReader(pack, limits.bytes+1))
	if err == nil && n > limits.bytes {
		err = &egress.SizeError{Limit: limits.bytes}
	}
	if err == nil {
		err = checkPackFile(ctx, file, limits)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// checkPackFile checks a file and leaves it at its start.
func checkPackFile(ctx context.Context, file *os.File, limits packLimits) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read what the server sent: %w", err)
	}
	if err := checkPack(ctx, bufio.NewReaderSize(file, 64<<10), limits); err != nil {
		return err
	}
	_, err := file.Seek(0, io.SeekStart)
	return err //nolint:wrapcheck // the first Seek would have failed
}

// checkPack reads a pack without keeping anything.
func checkPack(ctx context.Context, pack io.Reader, limits packLimits) error {
	scanner := packfile.NewScanner(pack)
	_, count, err := scanner.Header()
	if errors.Is(err, packfile.ErrEmptyPackfile) {
		return errors.New("the server sent no objects")
	}
	if err != nil {
		return fmt.Errorf("read what the server sent: %w", err)
	}
	if count > maxPackObjects {
		return fmt.Errorf("the repository has %d objects, more than the limit of %d", count, maxPackObjects)
	}
	total := int64(0)
	for range count {
		size, err := checkPackObject(scanner, limits)
		if err != nil {
			return err
		}
		if total += size; total/expansion > limits.bytes {
			return &egress.SizeError{Limit: limits.bytes * expansion}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// checkPackObject returns the size of the next object of a pack.
func checkPackObject(scanner *packfile.Scanner, limits packLimits) (int64, error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return 0, fmt.Errorf("read what the server sent: %w", err)
	}
	if header.Length > limits.objectBytes {
		return 0, objectTooLarge(header.Length, limits)
	}
	content := &announcedContent{remaining: header.Length}
	if _, _, err := scanner.NextObject(content); err != nil {
		return 0, fmt.Errorf("read what the server sent: %w", err)
	}
	if header.Type != plumbing.OFSDeltaObject && header.Type != plumbing.REFDeltaObject {
		return header.Length, nil
	}
	for _, size := range content.deltaSizes() {
		if size > uint64(limits.objectBytes/deltaCost) {
			return 0, fmt.Errorf("the repository has a file of %s that is stored as a difference to another one: "+
				"for these, the limit is a quarter of artifacts.limits.maxGitObjectBytes, %s", sizeText(int64(min(size, 1<<62))), sizeText(limits.objectBytes/deltaCost))
		}
	}
	return header.Length, nil
}

// deltaCost is how many times smaller than others files that are stored as differences must be.
const deltaCost = 4

func objectTooLarge(size int64, limits packLimits) error {
	return fmt.Errorf("the repository has a file of %s, and the limit artifacts.limits.maxGitObjectBytes is %s", sizeText(size), sizeText(limits.objectBytes))
}

func sizeText(size int64) string {
	if size >= 1<<20 {
		return fmt.Sprintf("%d MiB", size>>20)
	}
	return fmt.Sprintf("%d bytes", size)
}

// announcedContent fails if an object is larger than announced. It keeps the start of the object.
type announcedContent struct {
	remaining int64
	start     []byte
}

// Write is for io.Writer.
func (c *announcedContent) Write(p []byte) (int, error) {
	if c.remaining -= int64(len(p)); c.remaining < 0 {
		return 0, errors.New("an object is larger than its header says")
	}
	c.start = append(c.start, p[:min(len(p), 2*binary.MaxVarintLen64-len(c.start))]...)
	return len(p), nil
}

// deltaSizes returns the sizes of the two objects that a difference is between.
func (c *announcedContent) deltaSizes() []uint64 {
	base, n := binary.Uvarint(c.start)
	if n <= 0 {
		return nil // go-git rejects it
	}
	result, _ := binary.Uvarint(c.start[n:])
	return []uint64{base, result}
}
