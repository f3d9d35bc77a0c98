// Package databases starts real database servers for tests: the binaries of Debian's packages, on a
// free port, with their data in a temporary directory. If VEDETTE_TEST_POSTGRES or
// VEDETTE_TEST_MYSQL is the URL of a server, that server is used, except by tests that kill their
// server. If VEDETTE_TEST_MYSQLD is the program of a MySQL server, it is started instead of
// MariaDB. If there is no server, the test fails; nothing is skipped.
package databases
