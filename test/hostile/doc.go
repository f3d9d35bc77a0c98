// Package hostile contains tests in which one party is hostile: an agent towards the server, or an
// API server towards the agent. Honest parties beside it must not be affected.
package hostile
