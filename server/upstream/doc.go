// Package upstream lets the server stand in front of an existing Clouddriver. The server answers
// for the accounts of agents, passes on what concerns other accounts and other cloud providers, and
// merges what spans both. Table says for each endpoint which of these applies.
//
// An account that both know belongs to the agents: what the other Clouddriver says about it is left
// out. If the other Clouddriver is slow or does not answer, merged answers have its last complete
// part or fail with status 503, as Policy says, and what only it can answer fails with status 503.
// docs/decisions/0077, 0136 and 0137 say why.
//
// The other Clouddriver checks permissions itself; it gets the headers of the caller.
package upstream
