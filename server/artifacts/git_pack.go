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

	"github.com/vedette-io/vedette/internal/bytesize"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// packLimits bound what unpacking costs. go-git holds an object in memory while it unpacks it, and
// several copies of one that is stored as a difference: a pack of 600 KB took 5.8 GB. The sizes
// that a pack announces are therefore checked before go-git sees it.
//
// A pack is received into a file, and one pass reads the sizes that it announces, differences included. Objects that are
// stored as differences may have a quarter of objectBytes: two files of 60 MB took 540 MB. The price is that packs are
// decompressed twice.
type packLimits struct {
	bytes       int64 // of the pack
	objectBytes int64 // of one object
}

const (
	// maxPackObjects bounds the index of a pack, which is in memory: unpacking takes 450 bytes for each. Linux has 100,000 files.
	maxPackObjects = 500_000
	// expansion is how many times larger than an artifact the content of a repository may be.
	expansion = 8
)

// packSize is what decides how much memory a pack takes.
type packSize struct {
	objects      int64
	total        int64 // bytes of all objects, as they are in the pack
	largest      int64 // object
	largestDelta int64 // object that is stored as a difference, or the one that it is a difference to
}

// What go-git takes at most, estimated from its structures.
const (
	unpackedObject  = 64       // for each object of a clone
	unpackingObject = 450      // for each object while it is unpacked
	deltaCacheBytes = 96 << 20 // for what differences are to, while they are resolved
	cloneBytes      = 32 << 20 // for the directories of an archive, the cache of objects, and buffers
)

// unpacking returns the memory that a pack takes while it is unpacked.
func (s packSize) unpacking() int64 {
	size := cloneBytes + s.objects*unpackingObject + 2*s.largest
	if s.largestDelta > 0 {
		size += 4*s.largestDelta + min(deltaCacheBytes, s.total+s.objects*s.largestDelta)
	}
	return size
}

// unpacked returns the memory that a clone takes afterwards.
func (s packSize) unpacked() int64 { return cloneBytes + s.objects*unpackedObject }

func (s *packSize) add(object packObject) {
	s.total += object.size
	s.largest = max(s.largest, object.size)
	s.largestDelta = max(s.largestDelta, object.delta)
}

type packObject struct {
	size  int64 // as it is in the pack
	delta int64 // the larger one of the two objects that it is a difference between; 0 for none
}

func savePack(ctx context.Context, path string, pack io.Reader, limits packLimits) (*os.File, packSize, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, packSize{}, fmt.Errorf("save what the server sent: %w", err)
	}
	n, err := io.Copy(file, io.LimitReader(pack, limits.bytes+1))
	if err == nil && n > limits.bytes {
		err = &egress.SizeError{Limit: limits.bytes}
	}
	var size packSize
	if err == nil {
		size, err = checkPackFile(ctx, file, limits)
	}
	if err != nil {
		file.Close()
		return nil, size, err
	}
	return file, size, nil
}

// checkPackFile checks a file and leaves it at its start.
func checkPackFile(ctx context.Context, file *os.File, limits packLimits) (packSize, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return packSize{}, fmt.Errorf("read what the server sent: %w", err)
	}
	size, err := checkPack(ctx, bufio.NewReaderSize(file, 64<<10), limits)
	if err != nil {
		return size, err
	}
	_, err = file.Seek(0, io.SeekStart)
	return size, err //nolint:wrapcheck // the first Seek would have failed
}

// checkPack reads a pack without keeping anything.
func checkPack(ctx context.Context, pack io.Reader, limits packLimits) (packSize, error) {
	scanner := packfile.NewScanner(pack)
	_, count, err := scanner.Header()
	size := packSize{objects: int64(count)}
	if errors.Is(err, packfile.ErrEmptyPackfile) {
		return size, errors.New("the server sent no objects")
	}
	if err != nil {
		return size, fmt.Errorf("read what the server sent: %w", err)
	}
	if count > maxPackObjects {
		return size, fmt.Errorf("the repository has %d objects, more than the limit of %d", count, maxPackObjects)
	}
	for range count {
		object, err := checkPackObject(scanner, limits)
		if err != nil {
			return size, err
		}
		if size.add(object); size.total/expansion > limits.bytes {
			return size, &egress.SizeError{Limit: limits.bytes * expansion}
		}
		if ctx.Err() != nil {
			return size, context.Cause(ctx)
		}
	}
	return size, nil
}

// checkPackObject returns the size of the next object of a pack.
func checkPackObject(scanner *packfile.Scanner, limits packLimits) (packObject, error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return packObject{}, fmt.Errorf("read what the server sent: %w", err)
	}
	object := packObject{size: header.Length}
	isDelta := header.Type == plumbing.OFSDeltaObject || header.Type == plumbing.REFDeltaObject
	switch {
	case header.Length > limits.objectBytes:
		return object, objectTooLarge(header.Length, limits)
	case isDelta && header.Length > limits.objectBytes/deltaCost:
		return object, deltaTooLarge(uint64(header.Length), limits) //nolint:gosec // it is not negative
	case (header.Type == plumbing.CommitObject || header.Type == plumbing.TagObject) && header.Length > maxCommitBytes:
		return object, fmt.Errorf("the repository has a commit or a tag of %s, and the limit is %s", bytesize.Text(header.Length), bytesize.Text(maxCommitBytes))
	}
	content := &announcedContent{remaining: header.Length}
	if _, _, err := scanner.NextObject(content); err != nil {
		return object, fmt.Errorf("read what the server sent: %w", err)
	}
	if !isDelta {
		return object, nil
	}
	for _, size := range content.deltaSizes() {
		if size > uint64(limits.objectBytes/deltaCost) { //nolint:gosec // it is not negative
			return object, deltaTooLarge(size, limits)
		}
		object.delta = max(object.delta, int64(size), header.Length) //nolint:gosec // it was compared with a limit
	}
	return object, nil
}

func deltaTooLarge(size uint64, limits packLimits) error {
	return fmt.Errorf("the repository has a file of %s that is stored as a difference to another one: "+
		"for these, the limit is a quarter of artifacts.limits.maxGitObjectBytes, %s", bytesize.Text(int64(min(size, 1<<62))), bytesize.Text(limits.objectBytes/deltaCost))
}

// maxCommitBytes bounds commits and tags, which are decoded into several times their size.
const maxCommitBytes = 1 << 20

// deltaCost is how many times smaller than others files that are stored as differences must be.
const deltaCost = 4

func objectTooLarge(size int64, limits packLimits) error {
	return fmt.Errorf("the repository has a file of %s, and the limit artifacts.limits.maxGitObjectBytes is %s", bytesize.Text(size), bytesize.Text(limits.objectBytes))
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
