package metricset

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vedette-io/vedette/internal/keypair"
)

// FileMetrics measure the files of certificates of a program.
type FileMetrics struct {
	current, expiry *prometheus.GaugeVec
}

// NewFileMetrics adds the metrics of certificates in files. Their names begin with prefix.
func NewFileMetrics(s *Set, prefix string) *FileMetrics {
	return &FileMetrics{
		current: s.Gauge(prefix+"_certificate_files_current",
			"1 if the certificate, key and authorities in the files of a use are in use, 0 if they cannot be, so that those from before are. "+
				"use is a key of the configuration.", "use"),
		expiry: s.Gauge(prefix+"_certificate_expiry_seconds", "Unix time at which the certificate in the files of a use ends.", "use"),
	}
}

// FilesRead records what the files contain.
func (m *FileMetrics) FilesRead(states []keypair.UseState) {
	for _, s := range states {
		current := 1.0
		if s.Problem != nil {
			current = 0
		}
		m.current.WithLabelValues(s.Name).Set(current)
		if !s.Expiry.IsZero() {
			m.expiry.WithLabelValues(s.Name).Set(float64(s.Expiry.Unix()))
		}
	}
}
