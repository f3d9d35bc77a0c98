// Package namefilter remembers which texts are in no name of a set, in few bytes: it keeps which
// sequences of three bytes the names have. A search for a text need not read a set in which a
// sequence of the text is missing.
//
// A Filter is sure only of what is missing. Names are never removed from it, and sequences share
// bits.
package namefilter

import (
	"math/bits"
	"slices"
	"sync"
)

// sequenceLength is that of trigrams. A large set has nearly all sequences of two bytes, and
// sequences of four would take several times the memory.
const sequenceLength = 3

const (
	minBits = 1 << 9
	// maxBits is for sets of any size: names of Kubernetes have 38 characters, and so fewer than
	// 55,000 sequences. It takes 32 KiB.
	maxBits = 1 << 18
)

// Filter is the filter of one set of names, each of which has a kind. Its methods may be called
// concurrently.
type Filter struct {
	mu    sync.Mutex
	words []uint64 // their number is a power of two
	kinds []int64  // sorted
	added int      // since the filter was compacted
	limit int      // of added
}

// New returns the filter of an empty set. It is large until Compact is called.
func New() *Filter { return &Filter{words: make([]uint64, maxBits/64)} }

// Add adds the texts of one object, such as its namespace and its name.
func (f *Filter) Add(kind int64, texts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.added++
	if i, found := slices.BinarySearch(f.kinds, kind); !found {
		f.kinds = slices.Insert(f.kinds, i, kind)
	}
	for _, text := range texts {
		for i := sequenceLength; i <= len(text); i++ {
			word, bit := f.position(hash(text[i-sequenceLength : i]))
			f.words[word] |= bit
		}
	}
}

// Compact gives the filter as many bits as its names need. At most a quarter of them is set then, if
// the set is not huge.
func (f *Filter) Compact() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.words) > minBits/64 {
		half := fold(f.words)
		if countOnes(half) > len(half)*64/4 {
			break
		}
		f.words = half
	}
	f.words = slices.Clip(f.words)
	f.limit = 2*f.added + 100
	f.added = 0
}

// fold returns words of half the number. A hash has the bit in them that either of its two bits was.
func fold(words []uint64) []uint64 {
	half := slices.Clone(words[:len(words)/2])
	for i, word := range words[len(half):] {
		half[i] |= word
	}
	return half
}

func countOnes(words []uint64) int {
	n := 0
	for _, word := range words {
		n += bits.OnesCount64(word)
	}
	return n
}

// IsWorn reports whether so many names were added since Compact that a new filter of the names that
// still exist would be better.
func (f *Filter) IsWorn() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.added > f.limit
}

// MayContain reports whether an object of one of the kinds may have a text that contains the pattern.
func (f *Filter) MayContain(p Pattern, kinds []int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range p {
		if word, bit := f.position(h); f.words[word]&bit == 0 {
			return false
		}
	}
	return slices.ContainsFunc(kinds, func(kind int64) bool {
		_, found := slices.BinarySearch(f.kinds, kind)
		return found
	})
}

func (f *Filter) position(h uint32) (word int, bit uint64) {
	h &= uint32(len(f.words)*64 - 1) //nolint:gosec // at most maxBits
	return int(h / 64), 1 << (h % 64)
}

// Pattern is a text to search for.
type Pattern []uint32 // the hashes of its sequences

// NewPattern returns the pattern of a text. Any name may contain a text that is shorter than a
// sequence.
func NewPattern(text string) Pattern {
	var p Pattern
	for i := sequenceLength; i <= len(text); i++ {
		p = append(p, hash(text[i-sequenceLength:i]))
	}
	return p
}

// hash mixes the bytes of a sequence, so that its lowest bits depend on all of them.
func hash(sequence string) uint32 {
	h := uint32(sequence[0]) | uint32(sequence[1])<<8 | uint32(sequence[2])<<16
	h *= 0x9E3779B1
	h ^= h >> 15
	h *= 0x85EBCA77
	return h ^ h>>13
}
