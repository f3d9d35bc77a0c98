package artifacts

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bytesize"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/internal/tempdir"
)

// gitClone is a bare repository in a directory. It keeps objects on disk, so that the size of a
// repository does not count as memory.
//
// Clouddriver can keep clones for later fetches. Here each fetch clones anew, so the keys cloneRetention… have no effect:
// without history a clone takes one request and little more than the files, and a kept clone needs locks, a size limit and a
// disk that survives.
//
// A version is looked for among branches, then tags, then IDs. A complete ID is requested by itself if the server allows it
// (GitHub and GitLab do); otherwise, and for abbreviated IDs, everything is fetched. The archive is what git archive writes;
// tests compare both, with attributes, links, submodules, modes and times. Its size is limited too, because directories of a few
// bytes can contain each other many times.
type gitClone struct {
	dir     *tempdir.Dir
	storage *filesystem.Storage
	limits  packLimits
	// received is the number of bytes of the pack.
	received int64
	budget   cloneBudget
	memory   *fair.Grant // that the clone takes; nil for none yet
	disk     *fair.Grant // that the clone takes; nil for none yet
}

// cloneBudget is where the clones of one caller take memory and disk from.
type cloneBudget struct {
	memory, disk *fair.Line
	capacity     int64 // of disk
	caller       string
}

// largeObject is the size above which objects are streamed instead of read into memory.
const largeObject = 1 << 20

// objectCacheBytes bounds the objects that a clone keeps in memory.
const objectCacheBytes = 8 << 20

func newGitClone(dir *tempdir.Dir, limits packLimits, budget cloneBudget) *gitClone {
	storage := filesystem.NewStorageWithOptions(osfs.New(filepath.Join(dir.Path, "git")), cache.NewObjectLRU(objectCacheBytes),
		filesystem.Options{ExclusiveAccess: true, LargeObjectThreshold: largeObject})
	return &gitClone{dir: dir, storage: storage, limits: limits, budget: budget}
}

var commitID = regexp.MustCompile(`^[0-9a-f]{7,40}$`)

// fetch gets the commit of a branch, a tag or an abbreviated or complete ID, without its history if
// the server allows that. A branch is preferred to a tag, and both to an ID.
func (c *gitClone) fetch(ctx context.Context, session gitSession, version string,
	reconnect func() (gitSession, error)) (*object.Commit, error) {
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("list branches and tags: %w", err)
	}
	if hash, ok := tip(refs, version); ok {
		return c.fetchTip(ctx, session, refs, hash)
	}
	switch {
	case !commitID.MatchString(version):
		return nil, fmt.Errorf("there is no branch or tag %q", version)
	case len(version) == 40 && allowsAnyCommit(refs):
		return c.fetchTip(ctx, session, refs, plumbing.NewHash(version))
	}
	// The server sends commits by ID only if they are tips, so that everything is fetched.
	all, err := reconnect()
	if err != nil {
		return nil, err
	}
	defer all.Close()
	return c.fetchAll(ctx, all, version)
}

// tip returns the object of a branch or a tag, or of an ID that some reference points to.
func tip(refs *packp.AdvRefs, version string) (plumbing.Hash, bool) {
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		if hash, ok := refs.References[prefix+version]; ok {
			return hash, true
		}
	}
	for _, hash := range refs.References {
		if hash.String() == version {
			return hash, true
		}
	}
	return plumbing.ZeroHash, false
}

func allowsAnyCommit(refs *packp.AdvRefs) bool {
	return refs.Capabilities.Supports(capability.AllowReachableSHA1InWant) || refs.Capabilities.Supports("allow-any-sha1-in-want")
}

func (c *gitClone) fetchTip(ctx context.Context, session gitSession, refs *packp.AdvRefs,
	hash plumbing.Hash) (*object.Commit, error) {
	request := newPackRequest(refs, hash)
	if refs.Capabilities.Supports(capability.Shallow) {
		request.Depth = packp.DepthCommits(1)
		_ = request.Capabilities.Set(capability.Shallow) // it takes no value, so that it cannot fail
	}
	if err := c.receive(ctx, session, request); err != nil {
		return nil, err
	}
	return c.commit(hash)
}

// fetchAll gets all branches and tags with their history, and finds a commit by its ID.
func (c *gitClone) fetchAll(ctx context.Context, session gitSession, id string) (*object.Commit, error) {
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("list branches and tags: %w", err)
	}
	var wants []plumbing.Hash
	for name, hash := range refs.References {
		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			wants = append(wants, hash)
		}
	}
	if len(wants) == 0 {
		return nil, transport.ErrEmptyRemoteRepository
	}
	if err := c.receive(ctx, session, newPackRequest(refs, wants...)); err != nil {
		return nil, err
	}
	return c.find(id)
}

// find returns the only commit whose ID starts with a text.
func (c *gitClone) find(id string) (*object.Commit, error) {
	prefix, err := hex.DecodeString(id[:len(id)&^1])
	if err != nil {
		return nil, fmt.Errorf("read the ID: %w", err)
	}
	hashes, err := c.storage.HashesWithPrefix(prefix)
	if err != nil {
		return nil, fmt.Errorf("find commit %s: %w", id, err)
	}
	var found []*object.Commit
	for _, hash := range hashes {
		if commit, err := object.GetCommit(c.storage, hash); err == nil && strings.HasPrefix(hash.String(), id) {
			found = append(found, commit)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d commits have an ID that starts with %s", len(found), id)
	}
	return found[0], nil
}

// commit returns the commit that a reference points to. Annotated tags point to it indirectly.
func (c *gitClone) commit(hash plumbing.Hash) (*object.Commit, error) {
	for range 8 { // a tag may be a tag of a tag
		tag, err := object.GetTag(c.storage, hash)
		if err != nil {
			break
		}
		hash = tag.Target
	}
	commit, err := object.GetCommit(c.storage, hash)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", hash, err)
	}
	return commit, nil
}

func newPackRequest(refs *packp.AdvRefs, wants ...plumbing.Hash) *packp.UploadPackRequest {
	request := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	slices.SortFunc(wants, func(a, b plumbing.Hash) int { return strings.Compare(a.String(), b.String()) })
	request.Wants = slices.Compact(wants)
	// Setting a capability without a value cannot fail.
	switch {
	case refs.Capabilities.Supports(capability.Sideband64k):
		_ = request.Capabilities.Set(capability.Sideband64k)
	case refs.Capabilities.Supports(capability.Sideband):
		_ = request.Capabilities.Set(capability.Sideband)
	}
	if refs.Capabilities.Supports(capability.NoProgress) {
		_ = request.Capabilities.Set(capability.NoProgress)
	}
	return request
}

// receive stores the objects that a server sends.
func (c *gitClone) receive(ctx context.Context, session gitSession, request *packp.UploadPackRequest) error {
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		return fmt.Errorf("request objects: %w", err)
	}
	defer response.Close()
	var pack io.Reader = response
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		pack = sideband.NewDemuxer(sideband.Sideband64k, response)
	case request.Capabilities.Supports(capability.Sideband):
		pack = sideband.NewDemuxer(sideband.Sideband, response)
	}
	return c.store(ctx, pack)
}

// store unpacks a pack after it was received and checked.
func (c *gitClone) store(ctx context.Context, pack io.Reader) error {
	path := filepath.Join(c.dir.Path, "received.pack")
	file, size, err := savePack(ctx, path, diskReader{ctx, c, pack}, c.limits)
	if err != nil {
		return err
	}
	defer file.Close()
	if c.memory, err = c.budget.memory.Acquire(ctx, c.budget.caller, size.unpacking()); err != nil {
		return fmt.Errorf("wait for memory that other artifacts use: %w", err)
	}
	if err := packfile.UpdateObjectStorage(c.storage, file); err != nil {
		return fmt.Errorf("unpack objects: %w", err)
	}
	c.memory.Shrink(c.memory.Units() - size.unpacked())
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove what the server sent: %w", err)
	}
	c.disk.Shrink(c.disk.Units() / 2)
	return nil
}

// diskPart is how much disk a clone takes at once. It is there twice until the pack is unpacked.
const diskPart = 16 << 20

// diskReader takes disk for what is read of a pack.
type diskReader struct {
	ctx   context.Context //nolint:containedctx // it is that of the one pack
	clone *gitClone
	pack  io.Reader
}

func (r diskReader) Read(p []byte) (int, error) {
	n, err := r.pack.Read(p)
	c := r.clone
	if c.received += int64(n); 2*c.received <= c.disk.Units() {
		return n, err
	}
	var diskErr error
	if c.disk == nil {
		c.disk, diskErr = c.budget.disk.Acquire(r.ctx, c.budget.caller, 2*diskPart)
	} else {
		diskErr = c.disk.Grow(r.ctx, 2*diskPart)
	}
	if diskErr != nil {
		return n, vedette.Errorf(vedette.Unavailable, "clones of Git repositories use all %s of disk that they may use together: "+
			"retry later, or fetch smaller repositories: %w", bytesize.Text(c.budget.capacity), diskErr)
	}
	return n, err
}

// remove removes the clone, and releases its memory.
func (c *gitClone) remove() error {
	defer c.disk.Release()
	defer c.memory.Release()
	return c.dir.Remove()
}
