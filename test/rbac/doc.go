// Package rbac proves that the rules that "vedette-agent rbac" prints are sufficient and minimal: an agent that has exactly these
// watches all kinds and executes every kind of operation, and without any one of them something breaks.
package rbac
