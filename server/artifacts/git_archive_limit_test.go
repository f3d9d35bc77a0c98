package artifacts

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// memoryRepository is a repository that a server could send.
type memoryRepository struct {
	t *testing.T
	*memory.Storage
}

func (r memoryRepository) store(o *plumbing.MemoryObject) plumbing.Hash {
	r.t.Helper()
	id, err := r.SetEncodedObject(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r memoryRepository) blob(text string) plumbing.Hash {
	o := &plumbing.MemoryObject{}
	o.SetType(plumbing.BlobObject)
	_, _ = o.Write([]byte(text))
	return r.store(o)
}

func (r memoryRepository) tree(entries ...object.TreeEntry) plumbing.Hash {
	o := &plumbing.MemoryObject{}
	o.SetType(plumbing.TreeObject)
	for _, e := range entries {
		_, _ = fmt.Fprintf(o, "%o %s\x00%s", uint32(e.Mode), e.Name, e.Hash[:])
	}
	return r.store(o)
}

func (r memoryRepository) archive(root plumbing.Hash, visited int) error {
	a := &archiver{ctx: r.t.Context(), storage: r.Storage, commit: &object.Commit{TreeHash: root}, remaining: 1 << 30, limit: 1 << 30,
		rules: map[plumbing.Hash][]exportRule{}, entries: visited}
	return writeArchive(io.Discard, a)
}

// TestRepositoriesThatExpandAreRejected checks repositories that are small where they are sent and large where they are archived.
func TestRepositoriesThatExpandAreRejected(t *testing.T) {
	r := memoryRepository{t, memory.NewStorage()}
	blob := r.blob("x")
	directory := func(name string, id plumbing.Hash) object.TreeEntry {
		return object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: id}
	}
	wide := func(files int) []object.TreeEntry {
		entries := make([]object.TreeEntry, files)
		for i := range entries {
			entries[i] = object.TreeEntry{Name: fmt.Sprintf("f%06d", i), Mode: filemode.Regular, Hash: blob}
		}
		return entries
	}
	repeated := r.tree(object.TreeEntry{Name: "x", Mode: filemode.Regular, Hash: blob})
	for range 10 {
		var entries []object.TreeEntry
		for i := range 10 {
			entries = append(entries, directory(fmt.Sprint(i), repeated))
		}
		repeated = r.tree(entries...)
	}
	stacked := r.tree(wide(30_000)...)
	for range 3 {
		stacked = r.tree(append([]object.TreeEntry{directory("d", stacked)}, wide(30_000)...)...)
	}
	deep := r.tree(object.TreeEntry{Name: "x", Mode: filemode.Regular, Hash: blob})
	for range 3000 {
		deep = r.tree(directory("d", deep))
	}
	stars := r.blob("*" + strings.Repeat("a*", 1000) + "b export-ignore\n")
	slow := []object.TreeEntry{{Name: ".gitattributes", Mode: filemode.Regular, Hash: stars}}
	for i := range 1000 {
		slow = append(slow, object.TreeEntry{Name: strings.Repeat("a", 1100) + fmt.Sprint(i), Mode: filemode.Regular, Hash: blob})
	}
	longLink := object.TreeEntry{Name: "l", Mode: filemode.Symlink, Hash: r.blob(strings.Repeat("a", 5000))}
	for _, tt := range []struct {
		name    string
		root    plumbing.Hash
		visited int
		want    string
	}{
		{"one directory many times", repeated, maxArchiveEntries - 20_000, "more than 1000000 files and directories"},
		{"one directory that is large", r.tree(wide(150_000)...), 0, "more than 4 MiB of names"},
		{"large directories in each other", stacked, 0, "more than 4 MiB of names"},
		{"thirty thousand files", r.tree(wide(30_000)...), 0, ""},
		{"deep directories", deep, 0, "a path is longer than 4096 bytes"},
		{"slow patterns", r.tree(slow...), 0, "take too long to compare"},
		{"a long link", r.tree(longLink), 0, "longer than 4096 bytes"},
		{"no directory", blob, 0, "read the directory"},
	} {
		err := r.archive(tt.root, tt.visited)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %.300v, want %q", tt.name, err, tt.want)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: the message has %d bytes", tt.name, len(err.Error()))
		}
	}
}

// TestArchiveCountsNames checks that long paths and links count as part of the archive.
func TestArchiveCountsNames(t *testing.T) {
	r := memoryRepository{t, memory.NewStorage()}
	link := r.blob(strings.Repeat("a", 4000))
	var entries []object.TreeEntry
	for i := range 1000 {
		entries = append(entries, object.TreeEntry{Name: fmt.Sprint(i), Mode: filemode.Symlink, Hash: link})
	}
	a := &archiver{ctx: t.Context(), storage: r.Storage, commit: &object.Commit{TreeHash: r.tree(entries...)}, remaining: 1 << 20, limit: 1 << 20,
		rules: map[plumbing.Hash][]exportRule{}}
	if err := writeArchive(io.Discard, a); err == nil || !strings.Contains(err.Error(), "larger than the limit of 1 MiB") {
		t.Errorf("got %v, want 1,000 links of 4,000 bytes to exceed 1 MiB", err)
	}
}
