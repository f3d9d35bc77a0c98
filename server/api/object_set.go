package api

import "hash/maphash"

// objectSet is a set of objects that keeps a digest of 64 bits of each. Two objects with the same digest,
// which are one pair in billions, would be told as modified instead of added. The seed is a secret of the set:
// whoever can choose names could otherwise make one that has the digest of an object of others, and delete it.
type objectSet struct {
	seed    maphash.Seed // set with digests
	digests map[uint64]struct{}
	paid    int                     // objects that memory was granted for
	pay     func(bytes int64) error // acquires memory; nil if it is not limited
}

const (
	digestBytes   = 24   // of a digest in a map that grows by doubling
	digestsPerPay = 4096 // objects that are paid for at once
)

func (s *objectSet) add(ref objectRef) error {
	if s.digests == nil {
		s.digests, s.seed = map[uint64]struct{}{}, maphash.MakeSeed()
	}
	digest := s.digest(ref)
	if _, known := s.digests[digest]; !known && len(s.digests) >= s.paid {
		if s.pay != nil {
			if err := s.pay(digestsPerPay * digestBytes); err != nil {
				return err
			}
		}
		s.paid += digestsPerPay
	}
	s.digests[digest] = struct{}{}
	return nil
}

func (s *objectSet) contains(ref objectRef) bool {
	if s.digests == nil {
		return false
	}
	_, ok := s.digests[s.digest(ref)]
	return ok
}

// remove reports whether the set had the object.
func (s *objectSet) remove(ref objectRef) bool {
	if s.digests == nil {
		return false
	}
	digest := s.digest(ref)
	_, ok := s.digests[digest]
	delete(s.digests, digest)
	return ok
}

// digest hashes the parts of an object's identity. None of them contains a zero byte.
func (s *objectSet) digest(r objectRef) uint64 {
	var d maphash.Hash
	d.SetSeed(s.seed)
	for _, part := range [...]string{string(r.account), r.key.Kind.Group, r.key.Kind.Name, r.key.Namespace, r.key.Name} {
		_, _ = d.WriteString(part) // hashing does not fail
		_ = d.WriteByte(0)
	}
	return d.Sum64()
}
