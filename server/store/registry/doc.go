// Package registry stores accounts: which cluster each of them is, which agent is its cacher and in which term, how far its first
// synchronization has come, and when an agent was last connected for it.
package registry
