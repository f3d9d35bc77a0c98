// Package databases starts real database servers for tests: the binaries of
// Debian's packages, on a free port, with their data in a temporary directory.
// A server of the environment is used where VEDETTE_TEST_POSTGRES or
// VEDETTE_TEST_MYSQL holds its URL. What can be neither started nor found fails
// the test; nothing is skipped.
package databases
