package attributes

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
)

var (
	// ErrDamaged means that stored attributes cannot be decoded.
	ErrDamaged = errors.New("the stored attributes of an object are damaged")
	// ErrUnknownVersion means that attributes are not stored yet, or that another version of this
	// program has stored them. The object's agent reports it again.
	ErrUnknownVersion = errors.New("the attributes of an object are stored in another version")
)

// Decode sets attributes and moniker from what Append returned for an object with that name. It
// leaves the owner's uid and the moniker's application as they are. It returns what follows
// in b, split before the owner's uid.
func Decode(b []byte, name string, a *Attributes, m *vedette.Moniker) (rest, owner string, err error) {
	if len(b) == 0 || b[0] > formatVersion {
		return "", "", ErrUnknownVersion
	}
	r := reader{rest: string(b[1:]), name: name}
	if b[0] == 0 {
		return r.rest, "", ErrUnknownVersion
	}
	ownerBytes := uint64(0)
	flags := r.uvarint()
	a.Ignored, a.Managed = flags&flagIgnored != 0, flags&flagManaged != 0
	a.APIVersion = r.text()
	a.Created = r.varint()
	m.Cluster = r.cluster()
	if flags&flagOwner != 0 {
		a.Owner.Kind.Group = r.text()
		a.Owner.Kind.Name = r.text()
		a.Owner.Name = r.text()
		ownerBytes = r.uvarint()
	}
	m.Stack, m.Detail = r.textIf(flags&flagStack), r.textIf(flags&flagDetail)
	m.Blank = blankParts(flags, m)
	if flags&flagSequence != 0 {
		sequence := int(r.varint())
		m.Sequence = &sequence
	}
	if flags&flagLabels != 0 {
		a.Labels = r.pairs()
	}
	a.LoadBalancers = r.list(flags & flagLoadBalancers)
	if flags&flagWorkload != 0 {
		a.Replicas = r.varint()
	}
	a.Images = r.list(flags & flagWorkload)
	if flags&flagTemplateLabels != 0 {
		a.TemplateLabels = r.templateLabels(a.Labels)
	}
	if flags&flagSelector != 0 {
		a.Selector = r.pairs()
	}
	a.Services = r.list(flags & flagServices)
	a.Phase = r.textIf(flags & flagPhase)
	if flags&flagContainers != 0 {
		a.Containers = r.containers()
	}
	if r.damaged || ownerBytes > uint64(len(r.rest)) {
		return "", "", ErrDamaged
	}
	at := len(r.rest) - int(ownerBytes) //nolint:gosec // limited by the line above
	return r.rest[:at], r.rest[at:], nil
}

// blankParts returns the texts of a moniker that are known to be empty.
func blankParts(flags uint64, m *vedette.Moniker) (parts vedette.MonikerParts) {
	if flags&flagBlankApp != 0 {
		parts |= vedette.AppPart
	}
	if flags&flagBlankCluster != 0 {
		parts |= vedette.ClusterPart
	}
	if flags&flagStack != 0 && m.Stack == "" {
		parts |= vedette.StackPart
	}
	if flags&flagDetail != 0 && m.Detail == "" {
		parts |= vedette.DetailPart
	}
	return parts
}

// reader reads values from the front of rest. After the first value that is missing, damaged is
// set and all further values are zero.
type reader struct {
	rest, name string
	damaged    bool
}

func (r *reader) fail() {
	r.damaged, r.rest = true, ""
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint([]byte(r.rest[:min(len(r.rest), binary.MaxVarintLen64)]))
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1) //nolint:gosec // the zigzag encoding of encoding/binary
}

// count reads the number of elements that follow. An element takes at least a byte, so a larger
// number is damaged and not allocated.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(n) //nolint:gosec // limited by the line above
}

func (r *reader) text() string {
	v := r.uvarint()
	n := v >> textKindBits
	switch v & (1<<textKindBits - 1) {
	case textWord:
		if n < uint64(len(words)) {
			return words[n]
		}
	case textPrefix:
		if n <= uint64(len(r.name)) {
			return r.name[:n]
		}
	case textLiteral:
		if n <= uint64(len(r.rest)) {
			s := r.rest[:n]
			r.rest = r.rest[n:]
			return s
		}
	}
	r.fail()
	return ""
}

func (r *reader) textIf(flag uint64) string {
	if flag == 0 {
		return ""
	}
	return r.text()
}

func (r *reader) list(flag uint64) []string {
	if flag == 0 {
		return nil
	}
	n := r.count()
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.text()
	}
	return list
}

func (r *reader) cluster() string {
	kind := r.text()
	name := r.text()
	if kind == "" {
		return name
	}
	return kind + name
}

func (r *reader) pairs() map[string]string {
	n := r.count()
	pairs := make(map[string]string, min(n, len(r.rest)/2))
	for range n {
		key := r.text()
		pairs[key] = r.text()
	}
	return pairs
}

// templateLabels reads pairs of which some are also labels of the object.
func (r *reader) templateLabels(labels map[string]string) map[string]string {
	keys := slices.Sorted(maps.Keys(labels))
	n := r.count()
	pairs := make(map[string]string, min(n, len(r.rest)))
	for range n {
		at := r.uvarint()
		switch {
		case at == 0:
			key := r.text()
			pairs[key] = r.text()
		case at <= uint64(len(keys)):
			pairs[keys[at-1]] = labels[keys[at-1]]
		default:
			r.fail()
		}
	}
	return pairs
}

// containers reads the names, and then one bit for each that is ready.
func (r *reader) containers() []Container {
	containers := make([]Container, r.count())
	for i := range containers {
		containers[i].Name = r.text()
	}
	size := bytesFor(len(containers))
	if size > len(r.rest) {
		r.fail()
		return nil
	}
	for i := range containers {
		containers[i].Ready = r.rest[i/8]&(1<<(i%8)) != 0
	}
	r.rest = r.rest[size:]
	return containers
}
