package read

import (
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/namefilter"
)

func (r *Reader) Locks() *admission.Locks { return r.locks }

func (r *Reader) NameFilters() *namefilter.Set { return r.nameFilters }

// SetMaxClusters sets how many clusters of an account the inventory lists.
func (r *Reader) SetMaxClusters(n int) { r.maxClusters = n }

// ForgetInventory makes the next call read all accounts.
func (r *Reader) ForgetInventory() { r.inventory.current = nil }
