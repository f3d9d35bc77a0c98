package redact

import (
	"errors"
	"strings"

	"github.com/vedette-io/vedette"
)

// redaction redacts one object. It scans ahead and copies what is kept later, in runs that are as
// long as nothing is cut, because that is faster than copying member by member.
type redaction struct {
	scanner
	redactor   *Redactor
	resource   vedette.Resource
	projection *projection

	dst    []byte
	base   int // where the object begins in dst
	copied int // up to where raw was copied or cut

	noVersion bool     // the object may lack a resourceVersion
	inSecret  bool     // inside a Secret
	configMap bool     // the object is a ConfigMap
	walkAll   bool     // no value may be skipped without a look inside
	allow     *allowed // what the strict preset keeps of the current value; nil for everything
	marked    bool     // the marker of the strict preset is written
	sawSecret bool     // buffers of the redaction may hold data of a Secret

	root      rootFields
	header    header
	extractor extractor
	members   int    // members of the last closed container, without cut ones
	scratch   []byte // for text with resolved escapes
}

// rootFields are the fields at the root of the object that decide what it is.
type rootFields struct {
	kind, version bool // has a kind, an apiVersion
	list          bool // is a list by its kind
	listLike      bool // has a kind that ends in List
	items         bool // has an array called items
}

// begin prepares a redaction. It allocates room for all of raw at once, so that the buffer does
// not move.
func (p *redaction) begin(r *Redactor, resource vedette.Resource, dst, raw []byte) {
	p.redactor, p.resource = r, resource
	p.projection = r.projectionFor(resource.Kind)
	p.raw = raw
	p.dst, p.base = dst, len(dst)
	p.inSecret = resource.Kind == vedette.Kind{Name: "Secret"}
	p.configMap = resource.Kind == vedette.Kind{Name: "ConfigMap"}
	p.walkAll = r.rules.anyDepth() || p.inSecret
	p.sawSecret = p.inSecret
	p.allow = r.allowedFor(resource.Kind)
	p.extractor.reset(p.projection)
	p.grow(len(raw) + 128)
}

// release drops references to the caller's memory and zeroes what a Secret may have left in
// buffers.
func (p *redaction) release() {
	h, scratch := p.header, p.scratch
	if p.sawSecret {
		Wipe(h.bytes[:cap(h.bytes)])
		Wipe(scratch[:cap(scratch)])
		p.extractor.wipe()
	}
	if cap(scratch) > maxScratch || cap(h.bytes) > maxScratch {
		h.bytes, scratch = nil, nil
	}
	h.reset()
	h.bytes = h.bytes[:0]
	*p = redaction{header: h, extractor: p.extractor, scratch: scratch[:0]}
}

// maxScratch is how many bytes of scratch memory a redaction keeps for reuse.
const maxScratch = 64 << 10

// run walks the whole object and inserts a missing kind and apiVersion.
func (p *redaction) run() error {
	i := p.space(0)
	if p.at(i) != '{' {
		return &syntaxError{i, "an object"}
	}
	p.copied = i
	end, err := p.value(i, p.projection.root(), roleRoot)
	if err != nil {
		return err
	}
	p.flush(end)
	i = p.space(end)
	if i != len(p.raw) {
		return &syntaxError{i, "nothing behind the object"}
	}
	return p.check()
}

// check rejects bodies that are not a single object of a cluster.
func (p *redaction) check() error {
	if p.root.list || p.root.listLike && p.root.items {
		return errors.New("the body is a list, not one object")
	}
	var absent []string
	for _, l := range []struct {
		name    string
		missing bool
	}{
		{"kind", !p.root.kind && p.resource.Kind.Name == ""},
		{"apiVersion", !p.root.version && p.resource.Version == ""},
		{"metadata.name", p.header.texts[textName].empty()},
		{"metadata.resourceVersion", !p.noVersion && p.header.texts[textResourceVersion].empty()},
	} {
		if l.missing {
			absent = append(absent, l.name)
		}
	}
	if absent != nil {
		return errors.New("the object lacks " + strings.Join(absent, " and "))
	}
	return nil
}

// flush copies what is kept up to end, a position in raw.
func (p *redaction) flush(end int) {
	p.emit(p.raw[p.copied:end])
	p.copied = end
}

// omit cuts raw from start to end. The start may lie in a part that was already cut, as for
// adjacent members.
func (p *redaction) omit(start, end int) {
	if start > p.copied {
		p.flush(start)
	}
	p.copied = end
}

// replace writes text instead of raw from start to end.
func (p *redaction) replace(start, end int, text string) {
	p.flush(start)
	p.grow(len(text))
	p.dst = append(p.dst, text...)
	p.copied = end
}

func (p *redaction) emit(b []byte) {
	p.grow(len(b))
	p.dst = append(p.dst, b...)
}

// grow makes room for n bytes. Unlike append, it zeroes the object in the old buffer.
func (p *redaction) grow(n int) {
	if cap(p.dst)-len(p.dst) >= n {
		return
	}
	old := p.dst
	p.dst = append(make([]byte, 0, max(len(old)+n, 2*cap(old))), old...)
	Wipe(old[p.base:])
}

// checkpoint is a state of a redaction for rollback.
type checkpoint struct{ written, copied int }

func (p *redaction) checkpoint() checkpoint { return checkpoint{len(p.dst), p.copied} }

// rollback removes what was written since the checkpoint.
func (p *redaction) rollback(target checkpoint) {
	Wipe(p.dst[target.written:])
	p.dst, p.copied = p.dst[:target.written], target.copied
}
