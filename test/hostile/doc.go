// Package hostile contains tests in which one party is hostile: an agent towards the server, an API
// server towards the agent, and, all at once, whatever docs/security.md names as an entry point. Honest parties
// beside it must not be affected.
package hostile
