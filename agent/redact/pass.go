package redact

import (
	"errors"
	"strings"

	"github.com/vedette-io/vedette"
)

// pass is the work on one object. It scans forward and copies behind: what is
// kept is not copied member by member but in runs, each as long as nothing is
// cut.
type pass struct {
	scanner
	redactor   *Redactor
	resource   vedette.Resource
	projection *projection

	dst    []byte
	base   int // of dst, where the object begins
	copied int // of raw, up to where it was copied or cut

	inSecret  bool // within a Secret
	configMap bool // the whole object is one
	walkAll   bool // nothing may be stepped over unseen
	sawSecret bool // a Secret's bytes may have been in buffers of the pass

	facts     rootFacts
	header    header
	extractor extractor
	members   int    // of the container that was left last, without the cut ones
	scratch   []byte // for text without its escapes
}

// rootFacts is what the object says of itself at its root.
type rootFacts struct {
	kind, version bool // has a kind, an apiVersion
	list          bool // is a list by its kind
	listLike      bool // has a kind that ends in List
	items         bool // has an array called items
}

// begin makes a pass ready. The buffer gets room for all of raw at once, so
// that it is not moved on the way.
func (p *pass) begin(r *Redactor, resource vedette.Resource, dst, raw []byte) {
	p.redactor, p.resource = r, resource
	p.projection = r.projectionFor(resource.Kind)
	p.raw, p.dst, p.base = raw, dst, len(dst)
	p.inSecret = resource.Kind == vedette.Kind{Name: "Secret"}
	p.configMap = resource.Kind == vedette.Kind{Name: "ConfigMap"}
	p.walkAll = r.rules.anyDepth() || p.inSecret
	p.sawSecret = p.inSecret
	p.extractor.reset(p.projection)
	p.grow(len(raw) + 128)
}

// release lets go of what is not the pass's own, and forgets what a Secret may
// have left behind.
func (p *pass) release() {
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
	*p = pass{header: h, extractor: p.extractor, scratch: scratch[:0]}
}

// maxScratch is how much memory a pass keeps for the next one, in bytes.
const maxScratch = 64 << 10

// run walks the object from end to end and adds what it lacks.
func (p *pass) run() error {
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
	if i = p.space(end); i != len(p.raw) {
		return &syntaxError{i, "nothing behind the object"}
	}
	return p.check()
}

// check refuses what is no single object of a cluster.
func (p *pass) check() error {
	if p.facts.list || p.facts.listLike && p.facts.items {
		return errors.New("the body is a list, not one object")
	}
	var absent []string
	for _, l := range []struct {
		name    string
		missing bool
	}{
		{"kind", !p.facts.kind && p.resource.Kind.Name == ""},
		{"apiVersion", !p.facts.version && p.resource.Version == ""},
		{"metadata.name", p.header.texts[textName].empty()},
		{"metadata.resourceVersion", p.header.texts[textResourceVersion].empty()},
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

// flush copies what was kept up to end, a position in raw.
func (p *pass) flush(end int) {
	p.emit(p.raw[p.copied:end])
	p.copied = end
}

// omit leaves out raw from start to end. The start may lie in what was cut
// before, as it does for neighbours.
func (p *pass) omit(start, end int) {
	if start > p.copied {
		p.flush(start)
	}
	p.copied = end
}

// replace writes text in place of raw from start to end.
func (p *pass) replace(start, end int, text string) {
	p.flush(start)
	p.grow(len(text))
	p.dst = append(p.dst, text...)
	p.copied = end
}

func (p *pass) emit(b []byte) {
	p.grow(len(b))
	p.dst = append(p.dst, b...)
}

// grow makes room for n bytes. It is append's growing, but that it wipes the
// object from the buffer that it leaves.
func (p *pass) grow(n int) {
	if cap(p.dst)-len(p.dst) >= n {
		return
	}
	old := p.dst
	p.dst = append(make([]byte, 0, max(len(old)+n, 2*cap(old))), old...)
	Wipe(old[p.base:])
}

// checkpoint is a point of a pass to which it can go back.
type checkpoint struct{ written, copied int }

func (p *pass) checkpoint() checkpoint { return checkpoint{len(p.dst), p.copied} }

// rollback undoes what was written since.
func (p *pass) rollback(target checkpoint) {
	Wipe(p.dst[target.written:])
	p.dst, p.copied = p.dst[:target.written], target.copied
}
