package attributes

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// The stored form is
//
//	version, flags, apiVersion, created, the kind of the cluster's name and the rest of it,
//	and then each part whose flag is set
//
// Numbers are varints. A text is a number whose lowest two bits tell what the others are: the
// length of the bytes that follow, an index of words, or the length of a prefix of the object's
// name. The owner's uid and the application are not included, because they have columns, but the
// length of that column: readers get both columns in one value, because each value that a driver
// returns costs as much as the decoding of a Pod's attributes. Version 0 has no more than its byte.
const formatVersion = 1

// Version is the version of everything that derives what is stored from an object: the stored
// form, Of and the moniker. It must change with any of them, so that all objects are reported
// again.
const Version = 2

// PrefixBytes is how many of the first bytes hold what IsManaged needs.
const PrefixBytes = 2

// The flags. The first two are in the first byte.
const (
	flagIgnored = 1 << iota
	flagManaged
	flagOwner
	flagStack
	flagSequence
	flagLabels
	flagContainers
	flagWorkload
	flagDetail
	flagLoadBalancers
	flagTemplateLabels
	flagSelector
	flagServices
	flagPhase
	flagBlankApp
	flagBlankCluster
)

// The lowest two bits of a text's number.
const (
	textLiteral = iota
	textWord
	textPrefix   // of the object's name
	textKindBits = 2
)

// Append appends the stored form of an object's attributes and moniker. The name is the object's
// name, of which its owner's name and its labels often have a prefix. The owner's uid takes
// ownerBytes in its column.
func Append(b []byte, name string, a *Attributes, m *vedette.Moniker, ownerBytes int) []byte {
	w := writer{b: append(b, formatVersion), name: name}
	flags := flagsOf(a, m, ownerBytes)
	w.uvarint(flags)
	w.text(a.APIVersion)
	w.varint(a.Created)
	w.cluster(m.Cluster)
	if flags&flagOwner != 0 {
		w.text(a.Owner.Kind.Group)
		w.text(a.Owner.Kind.Name)
		w.text(a.Owner.Name)
		w.uvarint(uint64(ownerBytes)) //nolint:gosec // a length
	}
	w.texts(flags, flagStack, m.Stack)
	w.texts(flags, flagDetail, m.Detail)
	if flags&flagSequence != 0 {
		w.varint(int64(*m.Sequence))
	}
	if flags&flagLabels != 0 {
		w.labelKeys = w.pairs(a.Labels)
	}
	w.list(flags, flagLoadBalancers, a.LoadBalancers)
	if flags&flagWorkload != 0 {
		w.varint(a.Replicas)
	}
	w.list(flags, flagWorkload, a.Images)
	if flags&flagTemplateLabels != 0 {
		w.templateLabels(a.TemplateLabels, a.Labels)
	}
	if flags&flagSelector != 0 {
		w.pairs(a.Selector)
	}
	w.list(flags, flagServices, a.Services)
	w.texts(flags, flagPhase, a.Phase)
	if flags&flagContainers != 0 {
		w.containers(a.Containers)
	}
	return w.b
}

func flagsOf(a *Attributes, m *vedette.Moniker, ownerBytes int) uint64 {
	var flags uint64
	_, hasStack := m.Text(vedette.StackPart)
	_, hasDetail := m.Text(vedette.DetailPart)
	for _, f := range []struct {
		flag uint64
		set  bool
	}{
		{flagIgnored, a.Ignored}, {flagManaged, a.Managed}, {flagOwner, ownerBytes > 0 || a.Owner.Kind.Name != "" || a.Owner.Name != ""},
		{flagStack, hasStack}, {flagDetail, hasDetail}, {flagSequence, m.Sequence != nil}, {flagLabels, len(a.Labels) > 0},
		{flagLoadBalancers, len(a.LoadBalancers) > 0}, {flagWorkload, a.Replicas != 0 || len(a.Images) > 0},
		{flagTemplateLabels, len(a.TemplateLabels) > 0}, {flagSelector, len(a.Selector) > 0}, {flagServices, len(a.Services) > 0},
		{flagPhase, a.Phase != ""}, {flagContainers, len(a.Containers) > 0},
		{flagBlankApp, m.Blank&vedette.AppPart != 0}, {flagBlankCluster, m.Blank&vedette.ClusterPart != 0},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	return flags
}

// writer appends values to b.
type writer struct {
	b         []byte
	name      string   // of the object
	labelKeys []string // of its labels, sorted
}

func (w *writer) uvarint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *writer) varint(v int64) { w.b = binary.AppendVarint(w.b, v) }

func (w *writer) text(s string) {
	if i, ok := wordIndex[s]; ok {
		w.uvarint(i<<textKindBits | textWord)
		return
	}
	if strings.HasPrefix(w.name, s) {
		w.uvarint(uint64(len(s))<<textKindBits | textPrefix)
		return
	}
	w.uvarint(uint64(len(s)) << textKindBits) // textLiteral is 0
	w.b = append(w.b, s...)
}

func (w *writer) texts(flags, flag uint64, s string) {
	if flags&flag != 0 {
		w.text(s)
	}
}

func (w *writer) list(flags, flag uint64, list []string) {
	if flags&flag == 0 {
		return
	}
	w.uvarint(uint64(len(list)))
	for _, s := range list {
		w.text(s)
	}
}

// cluster writes a name like "deployment web" as two texts.
func (w *writer) cluster(cluster string) {
	kind := cluster[:strings.IndexByte(cluster, ' ')+1]
	w.text(kind)
	w.text(cluster[len(kind):])
}

// pairs writes pairs sorted by key, and returns the keys.
func (w *writer) pairs(pairs map[string]string) []string {
	keys := sortedKeys(pairs)
	w.uvarint(uint64(len(pairs)))
	for _, key := range keys {
		w.text(key)
		w.text(pairs[key])
	}
	return keys
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// templateLabels writes a pair that is also a label of the object as its place there plus one, and
// any other after a 0.
func (w *writer) templateLabels(pairs, labels map[string]string) {
	w.uvarint(uint64(len(pairs)))
	for _, key := range sortedKeys(pairs) {
		if at, found := slices.BinarySearch(w.labelKeys, key); found && labels[key] == pairs[key] {
			w.uvarint(uint64(at) + 1)
			continue
		}
		w.uvarint(0)
		w.text(key)
		w.text(pairs[key])
	}
}

// containers writes the names, and then one bit for each that is ready.
func (w *writer) containers(containers []Container) {
	w.uvarint(uint64(len(containers)))
	ready := make([]byte, bytesFor(len(containers)))
	for i, c := range containers {
		w.text(c.Name)
		if c.Ready {
			ready[i/8] |= 1 << (i % 8)
		}
	}
	w.b = append(w.b, ready...)
}

// bytesFor returns how many bytes hold n bits.
func bytesFor(n int) int { return (n + 7) / 8 }

// IsManaged reports the field Managed of stored attributes, of which only the first PrefixBytes
// need to be given.
func IsManaged(b []byte) bool {
	return len(b) >= PrefixBytes && b[0] == formatVersion && b[1]&flagManaged != 0
}
