package request

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/internal/jsondiff"
)

// objectChanges collects what an operation changes, for the history: of each object, its state before the first
// request that changed it, and the last state that was read since. It keeps objects as they may leave the agent, so that
// nothing that redaction removes is in a patch.
type objectChanges struct {
	objects map[vedette.Key]*objectChange
	order   []vedette.Key
	more    int // changed objects beyond vedette.MaxChangeObjects
	// versions are the resourceVersions of objects that listMeta has read, because they may be deleted next. Their memory
	// is part of what listMeta counts for each object.
	versions map[vedette.Key]string
	bytes    int64 // of the bodies of states, for which the operation has taken memory
}

type objectChange struct {
	before, after objectState
	attempted     bool // a request that changes it was sent
	changed       bool // and it succeeded
	deleting      bool // its deletion has begun, and it was not found gone since
}

// objectState is what is known of an object at one time. The zero value means that nothing is known.
type objectState struct {
	known   bool // body or missing says what it was
	missing bool
	version string
	body    []byte // redacted
}

// of returns the record of an object; nil if there are vedette.MaxChangeObjects others already.
func (c *objectChanges) of(key vedette.Key) *objectChange {
	if o := c.objects[key]; o != nil {
		return o
	}
	if len(c.order) == vedette.MaxChangeObjects {
		return nil
	}
	if c.objects == nil {
		c.objects = map[vedette.Key]*objectChange{}
	}
	o := &objectChange{}
	c.objects[key], c.order = o, append(c.order, key)
	return o
}

// place returns where the next state belongs: before the first change, or after one.
func (o *objectChange) place() *objectState {
	if o.changed {
		return &o.after
	}
	return &o.before
}

// recordsChanges reports whether requests of the run are recorded. A dry run changes nothing.
func (s *Sender) recordsChanges() bool { return s.Operation.Changes() && !s.dryRun }

// readsWhole reports whether the response to a request is the object, as it is read. Of a Secret that is the metadata.
func (req Request) readsWhole(p Path, path string) bool {
	return path == "" && p.Name != "" && req.Consume == nil && req.Accept == p.acceptHeader()
}

// beforeReadTimeout is how long an operation waits for the object before it, which it reads only to record what
// changes.
const beforeReadTimeout = 2 * time.Second

// readBefore reads the object before a request that changes it, unless it is known. A delete records no more than that
// it deleted the object, so it reads nothing for that. Without the object, the record lacks the patch, and says so.
func (s *Sender) readBefore(ctx context.Context, p Path, req Request) {
	if !s.recordsChanges() || req.isReadOnly() || p.Name == "" {
		return
	}
	_, isApply := s.Operation.Args.(vedette.ApplyArgs)
	o := s.objects.of(p.Key())
	if o == nil {
		return
	}
	if !o.before.known && !o.changed && req.Method != http.MethodPost && (req.Method != http.MethodDelete || isApply) {
		ctx, cancel := context.WithTimeout(ctx, beforeReadTimeout)
		defer cancel()
		release := s.TemporaryMemory()
		_, _, _ = s.Do(ctx, p, Request{Decoding: NotDecoded}) // notes what it reads
		release()
	}
	if o.before.version == "" {
		o.before.version = s.objects.versions[p.Key()]
	}
	o.attempted = true
}

// noteResponse records the object that a response has, and that a request changed it.
func (s *Sender) noteResponse(ctx context.Context, p Path, req Request, path string, raw []byte, err error) {
	if !s.recordsChanges() {
		return
	}
	if req.isReadOnly() {
		s.noteRead(ctx, p, req, path, raw, err)
		return
	}
	if err != nil {
		if o := s.objects.objects[p.Key()]; o != nil && IsConflict(err) && !o.changed {
			s.forget(&o.before) // others have changed it
		}
		return
	}
	key := p.Key()
	state := objectState{known: true, missing: true}
	if req.Method != http.MethodDelete {
		state = s.stateOf(p, req, path, raw, &key)
	}
	if key.Name == "" { // the API server generated it, and its response cannot be read
		return
	}
	o := s.objects.of(key)
	if o == nil {
		s.objects.more++
		return
	}
	if req.Method == http.MethodPost && !o.changed {
		s.keep(ctx, &o.before, objectState{known: true, missing: true})
	}
	o.attempted, o.changed = true, true
	o.deleting = req.Method == http.MethodDelete && ResourceVersionOf(raw) != "" // the response is the object, not a Status
	if o.deleting {
		state.version = ResourceVersionOf(raw)
	}
	switch {
	case state.known:
		s.keep(ctx, &o.after, state)
	case o.after.known && state.version != "":
		o.after.version = state.version // of a patch whose response is metadata
	}
}

// noteRead records an object that was read, or that it does not exist.
func (s *Sender) noteRead(ctx context.Context, p Path, req Request, path string, raw []byte, err error) {
	if !req.readsWhole(p, path) {
		return
	}
	key, state := p.Key(), objectState{known: true, missing: true}
	switch {
	case err == nil:
		state = s.stateOf(p, req, path, raw, &key)
	case !IsNotFound(err) || IsKindNotFound(err):
		return
	}
	if o := s.objects.of(key); o != nil && state.known {
		s.keep(ctx, o.place(), state)
	}
}

// NoteGone records that an object whose deletion was requested is gone.
func (s *Sender) NoteGone(key vedette.Key) {
	if o := s.objects.objects[key]; o != nil {
		o.deleting = false
	}
}

// NoteVersion records the version of an object that is about to be deleted.
func (s *Sender) NoteVersion(key vedette.Key, version string) {
	if !s.recordsChanges() {
		return
	}
	if s.objects.versions == nil {
		s.objects.versions = map[vedette.Key]string{}
	}
	s.objects.versions[key] = version
}

// stateOf returns the state of an object in a response, and sets its key, which is not known before if the API server
// generates the name. The state has only a version if the response is not the object.
func (s *Sender) stateOf(p Path, req Request, path string, raw []byte, key *vedette.Key) objectState {
	if path != "" {
		return objectState{}
	}
	if req.Accept != p.acceptHeader() {
		return objectState{version: strings.Clone(ResourceVersionOf(raw))}
	}
	object, err := s.Redact(p.Resource, raw)
	if err != nil {
		return objectState{}
	}
	// copies, because the buffers behind the body and the texts are larger
	*key = vedette.Key{Kind: object.Kind, Namespace: strings.Clone(object.Namespace), Name: strings.Clone(object.Name)}
	return objectState{known: true, version: strings.Clone(object.ResourceVersion), body: bytes.Clone(object.Body)}
}

// keep replaces what is at place by a state. If the operation gets no memory for the body, the state becomes unknown.
func (s *Sender) keep(ctx context.Context, place *objectState, state objectState) {
	s.forget(place)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), compareTimeout)
	defer cancel()
	if n := int64(cap(state.body)); s.UseMemory(ctx, n) == nil {
		s.objects.bytes += n
		*place = state
	}
}

// forget releases the memory of a state, which is unknown then.
func (s *Sender) forget(place *objectState) {
	n := int64(cap(place.body))
	s.objects.bytes -= n
	s.control.Memory.Shrink(n)
	*place = objectState{}
}

// ListChanges returns what the operation changed.
func (s *Sender) ListChanges(ctx context.Context, end vedette.OutcomeState) []vedette.ObjectChange {
	var all []vedette.ObjectChange
	room := vedette.MaxChangesBytes
	for _, key := range s.objects.order {
		o := s.objects.objects[key]
		change := vedette.ObjectChange{Key: key, Before: o.before.version, After: o.after.version}
		switch {
		case !o.changed && o.attempted && end == vedette.Lost:
			change.Note = "it is unknown whether the object was changed"
		case !o.changed, o.before.body != nil && o.after.body != nil && o.before.version == o.after.version:
			continue
		default:
			s.compare(ctx, o, &change, room)
		}
		room -= len(change.Patch)
		all = append(all, change)
	}
	if s.objects.more > 0 && len(all) > 0 {
		last := &all[len(all)-1]
		last.Note = appendNote(last.Note, fmt.Sprintf("%d more objects were changed, and are not in the record", s.objects.more))
	}
	return all
}

func appendNote(note, more string) string {
	if note == "" {
		return more
	}
	return note + "; " + more
}

// compareTimeout is how long an operation waits for the memory that its record takes. Without it, the record lacks the patch.
const compareTimeout = 100 * time.Millisecond

// compare sets the patch of a change, of at most room bytes.
func (s *Sender) compare(ctx context.Context, o *objectChange, change *vedette.ObjectChange, room int) {
	if o.after.missing && o.deleting {
		change.Note = "its deletion was requested, and has not been seen to end: finalizers or a grace period may delay it"
		return
	}
	if o.after.missing {
		change.After = ""
		setPatch(change, jsondiff.Deleted(), 0, room)
		return
	}
	switch {
	case !o.before.known:
		change.Note = "the object before the change could not be read, so the record has no patch"
		return
	case !o.after.known:
		change.Note = "the object after the change could not be read, so the record has no patch"
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), compareTimeout)
	defer cancel()
	release := s.TemporaryMemory()
	defer release()
	trees := DecodedSize(o.before.body, DecodedAsTree) + DecodedSize(o.after.body, DecodedAsTree)
	if err := s.UseMemory(ctx, trees+trees/2+maxPatchMemory); err != nil { // to compare them takes lists of names, half as large at most
		change.Note = "the agent had no memory to compare the object with what it was, so the record has no patch"
		return
	}
	after, err := manifest.ParseObject(o.after.body, "object")
	if err != nil {
		change.Note = fmt.Sprintf("the object cannot be compared with what it was: %v", err)
		return
	}
	change.TemplateAfter = templateDigest(after)
	dropUnrecorded(after)
	if o.before.missing {
		setPatch(change, jsondiff.Created(after), 0, room)
		return
	}
	before, err := manifest.ParseObject(o.before.body, "object")
	if err != nil {
		change.Note = fmt.Sprintf("the object cannot be compared with what it was: %v", err)
		return
	}
	change.TemplateBefore = templateDigest(before)
	dropUnrecorded(before)
	steps, more := jsondiff.Diff(before, after, min(room, vedette.MaxPatchBytes))
	setPatch(change, steps, more, room)
}

// dropUnrecorded removes what follows from the rest: the versions, and the copy of the manifest in an annotation.
func dropUnrecorded(tree object) {
	meta, _ := tree["metadata"].(object)
	delete(meta, "resourceVersion")
	delete(meta, "generation")
	if annotations, _ := meta["annotations"].(object); annotations != nil {
		delete(annotations, apply.LastApplied)
		if len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}
}

// templateDigest returns a digest of the pod template, as far as it may be known; empty if there is none.
func templateDigest(tree object) string {
	template, _ := manifest.Nested(tree, "spec", "template").(object)
	if template == nil {
		return ""
	}
	sum := sha256.New()
	w := bufio.NewWriter(sum) // which copies texts piece by piece, and not as a whole
	digestValue(w, template)
	_ = w.Flush() // a hash returns no error
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// digestValue writes what a digest is of, value by value: encoded as a whole, it would take memory that nobody has counted.
func digestValue(w *bufio.Writer, value any) {
	switch v := value.(type) {
	case object:
		fmt.Fprintf(w, "{%d", len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			digestText(w, name)
			digestValue(w, v[name])
		}
	case []any:
		fmt.Fprintf(w, "[%d", len(v))
		for _, element := range v {
			digestValue(w, element)
		}
	case string:
		digestText(w, v)
	default: // a number, a bool or nil
		fmt.Fprintf(w, ",%v", v)
	}
}

func digestText(w *bufio.Writer, text string) {
	fmt.Fprintf(w, `"%d:`, len(text))
	_, _ = w.WriteString(text)
}

// maxPatchMemory is what a patch takes while it is made: its steps, the one that is encoded, twice, and the patch.
const maxPatchMemory = 8 * vedette.MaxPatchBytes

// setPatch encodes the steps of a patch for which there is room. The number of further steps, which jsondiff left out, is
// more. A test without the step that follows it would look like a removal, so both are left out.
func setPatch(change *vedette.ObjectChange, steps []any, more, room int) {
	limit, patch := min(room, vedette.MaxPatchBytes), []byte{'['}
	kept, end := 0, len(patch) // after the last step that is not a test
	for i, step := range steps {
		if s, ok := step.(jsondiff.Step); ok && roomAfter(s.Value, limit-len(patch)) < 0 {
			break // to encode it would take memory that nobody has counted
		}
		raw, err := json.Marshal(step)
		if err != nil { // what was decoded can be encoded
			panic(err)
		}
		if len(patch)+len(raw)+2 > limit {
			break
		}
		if i > 0 {
			patch = append(patch, ',')
		}
		patch = append(patch, raw...)
		if s, ok := step.(jsondiff.Step); !ok || s.Op != "test" {
			kept, end = i+1, len(patch)
		}
	}
	if total := len(steps) + more; kept < total {
		change.Note = fmt.Sprintf("the patch is cut: %d of its %d steps are left out, because of the limits of %d KiB for an object "+
			"and %d KiB for an operation", total-kept, total, vedette.MaxPatchBytes>>10, vedette.MaxChangesBytes>>10)
	}
	if kept > 0 {
		change.Patch = append(patch[:end], ']')
	}
}

// roomAfter returns how much of a number of bytes is left after a value is encoded as JSON; less than 0 for nothing.
func roomAfter(value any, room int) int {
	switch v := value.(type) {
	case object:
		for name, member := range v {
			if room = roomAfterText(name, room-len(`:,`)); room < 0 {
				return room
			}
			if room = roomAfter(member, room); room < 0 {
				return room
			}
		}
		return room
	case []any:
		for _, element := range v {
			if room = roomAfter(element, room-len(`,`)); room < 0 {
				return room
			}
		}
		return room
	case string:
		return roomAfterText(v, room)
	}
	return room - 1
}

func roomAfterText(text string, room int) int {
	room -= len(`""`)
	for text != "" && room >= 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '"' || r == '\\' || r == '\b' || r == '\f' || r == '\n' || r == '\r' || r == '\t':
			room -= 2
		case r < ' ' || r == '<' || r == '>' || r == '&' || r == utf8.RuneError && size == 1:
			room -= len(`\u0000`)
		default:
			room -= size
		}
		text = text[size:]
	}
	return room
}
