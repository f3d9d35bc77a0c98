package verify

import "github.com/vedette-io/vedette"

// MaxBits is how many bits of a digest choose its bucket at most.
const MaxBits = 12

// objectsPerBucket is how many objects share a bucket on average, up to 64 Ki objects.
const objectsPerBucket = 16

// Sums adds up the digests of a feed's objects in buckets. Its memory does not depend on the number
// of objects.
type Sums struct {
	buckets [1 << MaxBits]uint64
	n       int
}

// Add adds an object.
func (s *Sums) Add(digest uint64) {
	s.buckets[vedette.Bucket(digest, MaxBits)] += digest
	s.n++
}

// Count returns how many objects were added.
func (s *Sums) Count() int { return s.n }

// Request returns the sums as a request. A small feed has few buckets, because most feeds are small.
func (s *Sums) Request() Request {
	bits := 0
	for bits < MaxBits && s.n>>bits > objectsPerBucket {
		bits++
	}
	sums := make([]uint64, 1<<bits)
	for i, sum := range s.buckets {
		sums[i>>(MaxBits-bits)] += sum
	}
	return Request{Bits: bits, Sums: sums}
}

// Request asks a server what it stores of a feed.
type Request struct {
	Bits int      // of a digest, which choose its bucket
	Sums []uint64 // of all buckets; nil in a request for digests
	// Buckets are those whose objects are wanted.
	Buckets []uint32
	// Named are digests of left over objects whose names are wanted.
	Named []uint64
}

// Answer is what a server stores of a feed.
type Answer struct {
	Buckets []uint32 // whose sums differ
	Objects []Object // of the wanted buckets
	Names   []string // of the named objects that it stores
}

// Object is what a verification knows of an object.
type Object struct {
	Digest uint64
	Name   uint64 // vedette.HashName
}
