package codec

// Limits of a Sample.
const (
	dictionarySize = 48 << 10 // bytes; larger dictionaries compress little better and take longer to load
	sampleCount    = 32       // texts
	sampleSize     = 8 << 10  // bytes of the beginning of each text
)

// Sample collects the texts of which a dictionary is made. It prefers one text of each
// application, because objects of ten Deployments show more of a kind than ten objects of
// one. Use NewSample to create one.
type Sample struct {
	texts        [][]byte // the first of each application
	spare        [][]byte // further ones of the same applications
	textBytes    int      // of texts
	totalBytes   int      // of texts and spare
	applications map[string]bool
}

// NewSample returns an empty sample.
func NewSample() *Sample { return &Sample{applications: map[string]bool{}} }

// Add copies the beginning of a text into the sample, unless the sample has enough of that
// kind.
func (s *Sample) Add(application string, text []byte) {
	if len(text) == 0 {
		return
	}
	text = append([]byte(nil), text[:min(len(text), sampleSize)]...)
	if s.applications[application] {
		if len(s.spare) < sampleCount {
			s.spare = append(s.spare, text)
			s.totalBytes += len(text)
		}
		return
	}
	if s.textBytes < dictionarySize {
		s.applications[application] = true
		s.texts = append(s.texts, text)
		s.textBytes += len(text)
		s.totalBytes += len(text)
	}
}

// Size returns the number of bytes that the sample keeps in memory.
func (s *Sample) Size() int { return s.totalBytes }

// IsFull reports whether the sample suffices for a dictionary.
func (s *Sample) IsFull() bool {
	return len(s.texts)+len(s.spare) >= sampleCount || s.textBytes >= dictionarySize
}

// Content returns the content of a dictionary. The spare texts come first, because zstd spends
// fewer bits on matches near the end.
func (s *Sample) Content() []byte {
	var joined []byte
	remaining := dictionarySize - s.textBytes
	for _, text := range s.spare {
		if len(text) <= remaining {
			joined = append(joined, text...)
			remaining -= len(text)
		}
	}
	for _, text := range s.texts {
		joined = append(joined, text...)
	}
	return joined[max(0, len(joined)-dictionarySize):]
}
