package artifacts

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitattributes"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// archiveCommit returns a compressed tar archive of a commit, or of one path of it, as "git archive"
// writes it: entries have their whole paths, the time is that of the commit, and files with the
// attribute export-ignore are left out. A path that does not exist is reported at once. The archive
// fails when ctx ends.
func archiveCommit(ctx context.Context, commit *object.Commit, subPath string, maxBytes int64) (io.ReadCloser, error) {
	root, err := commit.Tree()
	if err != nil {
		return nil, fmt.Errorf("read the commit %s: %w", commit.Hash, err)
	}
	subPath = strings.Trim(path.Clean("/"+subPath), "/")
	if subPath != "" {
		if _, err := root.FindEntry(subPath); err != nil {
			return nil, vedette.Errorf(vedette.NotFound, "%.300q does not exist in commit %s", subPath, commit.Hash)
		}
	}
	a := &archiver{ctx: ctx, commit: commit, subPath: subPath, remaining: maxBytes, limit: maxBytes}
	return startArchive(ctx, func(w io.Writer) error { return writeArchive(w, a, root) }), nil
}

func writeArchive(w io.Writer, a *archiver, root *object.Tree) error {
	compressed := gzip.NewWriter(w)
	a.tar = tar.NewWriter(compressed)
	header := &tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header",
		PAXRecords: map[string]string{"comment": a.commit.Hash.String()}}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	if err := a.writeTree(root, "", nil); err != nil {
		return err
	}
	return errors.Join(a.tar.Close(), compressed.Close())
}

// archiver writes the entries of an archive.
type archiver struct {
	ctx     context.Context //nolint:containedctx // it is that of the one archive
	tar     *tar.Writer
	commit  *object.Commit
	subPath string
	// remaining is the size that the archive may still grow by, uncompressed. Folders of a few
	// bytes that contain each other many times would otherwise make it endless.
	remaining, limit int64
}

// wants reports whether a path is in the archive: below the path that was asked for, or on the
// way to it.
func (a *archiver) wants(name string) bool {
	return a.subPath == "" || name == a.subPath || strings.HasPrefix(name, a.subPath+"/") || strings.HasPrefix(a.subPath, name+"/")
}

// writeTree writes a folder. Attributes are those of the folders above.
func (a *archiver) writeTree(tree *object.Tree, prefix string, attributes []gitattributes.MatchAttribute) error {
	attributes, err := withAttributes(tree, prefix, attributes)
	if err != nil {
		return err
	}
	matcher := gitattributes.NewMatcher(attributes)
	for _, entry := range tree.Entries {
		if a.ctx.Err() != nil { // entries that are left out write nothing that could fail
			return context.Cause(a.ctx)
		}
		if !isEntryName(entry.Name) {
			return fmt.Errorf("folder %q has an entry %.100q, which is not a valid name", prefix, entry.Name)
		}
		name := path.Join(prefix, entry.Name)
		ignored, _ := matcher.Match(strings.Split(name, "/"), []string{"export-ignore"})
		if ignore := ignored["export-ignore"]; ignore != nil && ignore.IsSet() || !a.wants(name) {
			continue
		}
		if err := a.writeEntry(tree, entry, name, attributes); err != nil {
			return fmt.Errorf("archive %q: %w", name, err)
		}
	}
	return nil
}

// isEntryName reports whether Git accepts a name in a folder. With others, whoever unpacks the archive
// could write outside of his folder, and folders could contain each other without end.
func isEntryName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.EqualFold(name, ".git") && !strings.ContainsAny(name, "/\x00")
}

func (a *archiver) writeEntry(tree *object.Tree, entry object.TreeEntry, name string, attributes []gitattributes.MatchAttribute) error {
	switch entry.Mode {
	case filemode.Dir:
		if err := a.writeHeader(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o775}); err != nil {
			return err
		}
		child, err := tree.Tree(entry.Name)
		if err != nil {
			return fmt.Errorf("read the folder: %w", err)
		}
		return a.writeTree(child, name, attributes)
	case filemode.Submodule:
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

// maxLinkBytes is more than any system allows for the target of a link.
const maxLinkBytes = 64 << 10

func (a *archiver) writeLink(file *object.File, name string) error {
	content, err := file.Reader()
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	defer content.Close()
	target, err := io.ReadAll(io.LimitReader(content, maxLinkBytes))
	if err != nil {
		return fmt.Errorf("read the link: %w", err)
	}
	return a.writeHeader(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: string(target), Mode: 0o777})
}

// tarBlock is the size of a header, and what sizes of files are rounded up to.
const tarBlock = 512

// maxPathBytes is the limit of Linux. It bounds how deep folders are nested.
const maxPathBytes = 4096

func (a *archiver) writeHeader(h tar.Header) error {
	if len(h.Name) > maxPathBytes {
		return fmt.Errorf("the path is longer than %d bytes", maxPathBytes)
	}
	if a.remaining -= tarBlock + h.Size; a.remaining < 0 {
		return &egress.SizeError{Limit: a.limit}
	}
	h.ModTime, h.Uname, h.Gname = a.commit.Committer.When, "root", "root"
	if err := a.tar.WriteHeader(&h); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

// maxAttributeBytes bounds the size of a .gitattributes file.
const maxAttributeBytes = 1 << 20

// withAttributes adds the attributes that a folder defines.
func withAttributes(tree *object.Tree, prefix string, attributes []gitattributes.MatchAttribute) ([]gitattributes.MatchAttribute, error) {
	entry, err := tree.FindEntry(".gitattributes")
	if err != nil || !entry.Mode.IsFile() {
		return attributes, nil //nolint:nilerr // most folders have none
	}
	file, err := tree.TreeEntryFile(entry)
	if err != nil {
		return nil, fmt.Errorf("read .gitattributes: %w", err)
	}
	content, err := file.Reader()
	if err != nil {
		return nil, fmt.Errorf("read .gitattributes: %w", err)
	}
	defer content.Close()
	var domain []string
	if prefix != "" {
		domain = strings.Split(prefix, "/")
	}
	// Lines that Git would ignore are ignored.
	own, err := gitattributes.ReadAttributes(io.LimitReader(content, maxAttributeBytes), domain, prefix == "")
	if err != nil {
		return attributes, nil //nolint:nilerr // an invalid file has no effect
	}
	return append(attributes[:len(attributes):len(attributes)], own...), nil
}
