// Package beside tests a server beside an existing Clouddriver: that accounts move from one to the other
// and back while Spinnaker's services ask without pause, and that a Clouddriver that is slow, dead or
// broken costs nobody more than it must.
//
// TestMove runs two real clusters, a server, two agents and a stand-in for Clouddriver (package standin),
// with readers in the manner of Orca and Fiat and with writers. No answer may be false: an application
// that is missing, an account that is there twice, a server group that is left out. It prints for how long each
// reader got errors in each step. With -freeze 1m it runs for some ten minutes: make move.
//
// TestBadUpstreams asks each merged endpoint while the stand-in misbehaves in each way that it knows.
//
// With -clouddriver FILE, the Java argument file of a real Clouddriver, TestMove uses that one in place of
// the stand-in, TestSameAnswers compares what both sides answer about one account, and BenchmarkMergedLists measures what the
// server adds to the time of large lists: make verify-beside SPINNAKER=DIR.
package beside
