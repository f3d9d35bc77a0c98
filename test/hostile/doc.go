// Package hostile holds tests in which one party lies: an agent to the server, an API
// server to the agent. Honest ones stand beside it, and go on.
package hostile
