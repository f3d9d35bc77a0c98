// Package directory keeps which databases accounts are spread over, and in which each account is. It does so in the first of them.
// docs/decisions/0197 says why. Package store passes calls on to the database that it names.
package directory
