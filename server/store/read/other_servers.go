package read

import (
	"github.com/vedette-io/vedette/server/store/versions"
)

// PublishOtherServer makes caches read again what another server has changed, and adds names that it has written to the filters.
func (r *Reader) PublishOtherServer(m versions.Message) {
	r.AddNames(m)
	r.versions.PublishOther(m.Effect())
}

// AddNames adds names that another server has written to the filters. It comes before the versions change, so that a search that
// sees the new versions finds the names. An account that was not read yet has no filter.
func (r *Reader) AddNames(m versions.Message) {
	names := r.names.Cached()
	if names == nil || !m.Objects {
		return
	}
	id, known := names.ID(m.Account)
	switch {
	case !known:
	case m.IsUnnamed:
		r.nameFilters.Forget(id)
	default:
		for _, f := range r.nameFilters.Of(id) {
			for _, c := range m.Changed {
				f.Add(c.KindID, c.Namespace, c.Name)
			}
		}
	}
}
