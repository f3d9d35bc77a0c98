// Package admission decides who may write to the database, and when: one writer per account
// (Locks), a limited number of transactions in a fair order (Semaphore), and small commits
// while an operation is in progress (ActiveOperations). It keeps its state in memory only, and so
// rules within one process only; between processes the terms of accounts and the lease do.
package admission
