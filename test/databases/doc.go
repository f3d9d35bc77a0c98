// Package databases starts real database servers for tests: the binaries of
// Debian's packages, on a free port, with their data in a temporary directory.
// A server of the environment is used where VEDETTE_TEST_POSTGRES or
// VEDETTE_TEST_MYSQL holds its URL, but for tests that end their server. Where
// VEDETTE_TEST_MYSQLD names the program of a MySQL server, that is started in
// MariaDB's place. What can be neither started nor found fails the test; nothing
// is skipped.
package databases
