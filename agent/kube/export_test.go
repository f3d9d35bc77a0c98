package kube

import "time"

// ResolveSoon makes the next CheckIdentity resolve the address.
func ResolveSoon(c *Cluster) {
	c.addresses.mu.Lock()
	defer c.addresses.mu.Unlock()
	c.addresses.resolved = time.Time{}
}

// ReloadNow is ReloadCredentials without its pause.
func ReloadNow(c *Cluster) { c.reloadCredentialsNow() }
