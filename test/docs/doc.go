// Package docs runs what pages of the documentation show: it starts the programs, brings about what a page describes, runs
// the page's commands, and compares what they print with the page. `go test ./test/docs -update` writes what differs to the pages.
//
// Outputs that are copied by hand do not change with the messages, and people search a page for the words that they see. So a
// page has what was printed and no placeholders. Both sides are normalized before they are compared: times, ages, ids, ports
// and versions are equal, and so are widths of columns. Addresses and paths of the test are replaced by those that a reader
// has. A test waits for what the page shows, because states take time to show; with -update it waits for given words, and
// then until nothing changes for two heartbeats. A command that changes something runs once. Each section with outputs has a
// test, and each output is shown by it. A page that is generated was weighed: the text between outputs is what a reader came
// for, and is better written where it stands.
package docs
