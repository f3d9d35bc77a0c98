package catalog

// SetLimits sets how many bytes dictionaries and samples may take.
func (d *Dictionaries) SetLimits(dictionaries, samples int) {
	d.limits = dictionaryLimits{dictionaries, samples}
}

// Memory returns the bytes of dictionaries and samples, as they are counted and as they are.
func (d *Dictionaries) Memory() (countedCached, countedSampled, cached, sampled int) {
	for _, sample := range d.samples {
		sampled += sample.Size()
	}
	for _, dictionary := range d.byID {
		cached += dictionary.Size()
	}
	return d.cachedBytes, d.sampleBytes, cached, sampled
}
