package artifacts

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bytesize"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// archiveCommit returns a compressed tar archive of a commit, or of one path of it, as "git archive"
// writes it: entries have their whole paths, the time is that of the commit, and files with the
// attribute export-ignore are left out. A path that does not exist is reported at once. The archive
// fails when ctx ends.
func (c *gitClone) archiveCommit(ctx context.Context, commit *object.Commit, subPath string, maxBytes int64) (io.ReadCloser, error) {
	a := &archiver{ctx: ctx, storage: c.storage, commit: commit, remaining: maxBytes, limit: maxBytes,
		rules: map[plumbing.Hash][]exportRule{}}
	a.subPath = strings.Trim(path.Clean("/"+subPath), "/")
	if err := a.findSubPath(); err != nil {
		return nil, err
	}
	return startArchive(ctx, func(w io.Writer) error { return writeArchive(w, a) }), nil
}

// findSubPath returns an error if the path that was asked for does not exist.
func (a *archiver) findSubPath() error {
	id := a.commit.TreeHash
	for rest, more := a.subPath, a.subPath != ""; more; {
		tree, release, err := a.readTree(id)
		if err != nil {
			return fmt.Errorf("read the commit %s: %w", a.commit.Hash, err)
		}
		var name string
		name, rest, more = strings.Cut(rest, "/")
		i := slices.IndexFunc(tree.Entries, func(e object.TreeEntry) bool { return e.Name == name })
		if i < 0 || more && tree.Entries[i].Mode != filemode.Dir {
			release()
			return vedette.Errorf(vedette.NotFound, "%.300q does not exist in commit %s", a.subPath, a.commit.Hash)
		}
		id = tree.Entries[i].Hash
		release()
	}
	return nil
}

func writeArchive(w io.Writer, a *archiver) error {
	compressed := gzip.NewWriter(w)
	a.tar = tar.NewWriter(compressed)
	header := &tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header",
		PAXRecords: map[string]string{"comment": a.commit.Hash.String()}}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	if err := a.writeTree(a.commit.TreeHash, "", nil); err != nil {
		return err
	}
	return errors.Join(a.tar.Close(), compressed.Close())
}

// Limits of directories. go-git reads a directory into memory, which takes up to treeCost times its size, and all
// directories on the way to an entry are in memory together. A directory of 10,000 files has half a megabyte.
const (
	maxPathTreeBytes  = 4 << 20
	maxArchiveEntries = 1_000_000 // Linux has 100,000
)

// archiver writes the entries of an archive. What it holds does not grow with the repository: the directories
// and the rules on the way to one entry, within limits.
type archiver struct {
	ctx     context.Context //nolint:containedctx // it is that of the one archive
	tar     *tar.Writer
	storage storer.EncodedObjectStorer
	commit  *object.Commit
	subPath string
	// remaining is the size that the archive may still grow by, uncompressed. Directories of a few
	// bytes that contain each other many times would otherwise make it endless.
	remaining, limit int64
	entries          int   // that were visited
	treeBytes        int64 // of the directories that are in memory
	attributes       exportAttributes
	rules            map[plumbing.Hash][]exportRule // of .gitattributes files below the root
}

// readTree reads a directory. Release must be called when it is no longer needed.
func (a *archiver) readTree(id plumbing.Hash) (tree *object.Tree, release func(), err error) {
	size, err := a.storage.EncodedObjectSize(id)
	if err != nil {
		return nil, nil, fmt.Errorf("read the directory: %w", err)
	}
	if a.treeBytes+size > maxPathTreeBytes {
		return nil, nil, fmt.Errorf("the directory and those above it have more than %s of names", bytesize.Text(maxPathTreeBytes))
	}
	if tree, err = object.GetTree(a.storage, id); err != nil {
		return nil, nil, fmt.Errorf("read the directory: %w", err)
	}
	a.treeBytes += size
	return tree, func() { a.treeBytes -= size }, nil
}

// wants reports whether a path is in the archive: below the path that was asked for, or on the
// way to it.
func (a *archiver) wants(name string) bool {
	return a.subPath == "" || name == a.subPath || strings.HasPrefix(name, a.subPath+"/") || strings.HasPrefix(a.subPath, name+"/")
}

// writeTree writes a directory. The rules are those of the directories above.
func (a *archiver) writeTree(id plumbing.Hash, prefix string, rules *exportRules) error {
	tree, release, err := a.readTree(id)
	if err != nil {
		return fmt.Errorf("directory %.300q: %w", prefix, err)
	}
	defer release()
	if rules, err = a.withRulesOf(tree, prefix, rules); err != nil {
		return fmt.Errorf("directory %.300q: %w", prefix, err)
	}
	for _, entry := range tree.Entries {
		if a.ctx.Err() != nil { // entries that are left out write nothing that could fail
			return context.Cause(a.ctx)
		}
		if a.entries++; a.entries > maxArchiveEntries {
			return fmt.Errorf("the repository has more than %d files and directories", maxArchiveEntries)
		}
		if !isEntryName(entry.Name) {
			return fmt.Errorf("directory %.300q has an entry %.100q, which is not a valid name", prefix, entry.Name)
		}
		name := path.Join(prefix, entry.Name)
		if len(name) > maxPathBytes {
			return fmt.Errorf("directory %.300q: a path is longer than %d bytes", prefix, maxPathBytes)
		}
		if !a.wants(name) {
			continue
		}
		if ignored, err := a.attributes.ignores(rules, name, entry.Mode == filemode.Dir); err != nil {
			return err
		} else if ignored {
			continue
		}
		if err := a.writeEntry(tree, entry, name, rules); err != nil {
			return err
		}
	}
	return nil
}

// isEntryName reports whether Git accepts a name in a directory. With others, whoever unpacks the archive
// could write outside of his directory, and directories could contain each other without end.
func isEntryName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.EqualFold(name, ".git") && !strings.ContainsAny(name, "/\x00")
}

// writeEntry writes an entry with all that it contains. Errors name the innermost path only, because directories
// can be nested thousands of times.
func (a *archiver) writeEntry(tree *object.Tree, entry object.TreeEntry, name string, rules *exportRules) error {
	if entry.Mode != filemode.Dir {
		if err := a.writeContent(tree, entry, name); err != nil {
			return fmt.Errorf("archive %.300q: %w", name, err)
		}
		return nil
	}
	if err := a.writeHeader(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o775}); err != nil {
		return fmt.Errorf("archive %.300q: %w", name, err)
	}
	return a.writeTree(entry.Hash, name, rules)
}

func (a *archiver) writeContent(tree *object.Tree, entry object.TreeEntry, name string) error {
	if entry.Mode == filemode.Submodule {
		return a.writeHeader(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o775})
	}
	file, err := tree.TreeEntryFile(&entry)
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	if entry.Mode == filemode.Symlink {
		return a.writeLink(file, name)
	}
	return a.writeFile(file, name)
}

func (a *archiver) writeFile(file *object.File, name string) error {
	header := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: file.Size, Mode: 0o664}
	if file.Mode == filemode.Executable {
		header.Mode = 0o775
	}
	if err := a.writeHeader(header); err != nil {
		return err
	}
	content, err := file.Reader()
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	defer content.Close()
	_, err = io.Copy(a.tar, content)
	return err
}

// maxLinkBytes is the limit of Linux for the target of a link.
const maxLinkBytes = 4096

func (a *archiver) writeLink(file *object.File, name string) error {
	if file.Size > maxLinkBytes {
		return fmt.Errorf("the target of the link is longer than %d bytes", maxLinkBytes)
	}
	content, err := file.Reader()
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	defer content.Close()
	target, err := io.ReadAll(content)
	if err != nil {
		return fmt.Errorf("read the link: %w", err)
	}
	return a.writeHeader(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: string(target), Mode: 0o777})
}

// tarBlock is the size of a header, and what sizes of files are rounded up to.
const tarBlock = 512

// maxHeaderText is the length of a path that fits into a header.
const maxHeaderText = 100

// maxPathBytes is the limit of Linux. It bounds how deep directories are nested.
const maxPathBytes = 4096

func (a *archiver) writeHeader(h tar.Header) error {
	size := tarBlock + h.Size
	if texts := len(h.Name) + len(h.Linkname); texts > maxHeaderText {
		size += 2*tarBlock + int64(texts) // they have an entry of their own
	}
	if a.remaining -= size; a.remaining < 0 {
		return &egress.SizeError{Limit: a.limit}
	}
	h.ModTime = a.commit.Committer.When
	h.Uname = "root"
	h.Gname = "root"
	if err := a.tar.WriteHeader(&h); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

// maxKnownAttributes bounds how many .gitattributes files without rules are known not to have some.
const maxKnownAttributes = 1000

// withRulesOf adds the rules that a directory has of its own.
func (a *archiver) withRulesOf(tree *object.Tree, prefix string, above *exportRules) (*exportRules, error) {
	i := slices.IndexFunc(tree.Entries, func(e object.TreeEntry) bool { return e.Name == ".gitattributes" })
	if i < 0 || !tree.Entries[i].Mode.IsFile() || tree.Entries[i].Mode == filemode.Symlink {
		return above, nil
	}
	isRoot := prefix == ""
	rules, isKnown := a.rules[tree.Entries[i].Hash]
	if !isKnown || isRoot {
		var err error
		if rules, err = a.readRules(tree, tree.Entries[i], isRoot); err != nil {
			return nil, err
		}
	}
	if !isRoot && (len(rules) > 0 || len(a.rules) < maxKnownAttributes) {
		a.rules[tree.Entries[i].Hash] = rules
	}
	if len(rules) == 0 {
		return above, nil
	}
	if isRoot {
		return &exportRules{rules: rules}, nil
	}
	return &exportRules{above: above, depth: strings.Count(prefix, "/") + 1, rules: rules}, nil
}

func (a *archiver) readRules(tree *object.Tree, entry object.TreeEntry, isRoot bool) ([]exportRule, error) {
	file, err := tree.TreeEntryFile(&entry)
	if err != nil {
		return nil, fmt.Errorf("read .gitattributes: %w", err)
	}
	if file.Size > maxAttributeBytes {
		return nil, errAttributeFile
	}
	content, err := file.Reader()
	if err != nil {
		return nil, fmt.Errorf("read .gitattributes: %w", err)
	}
	defer content.Close()
	return a.attributes.read(content, isRoot)
}
