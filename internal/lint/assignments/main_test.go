package main

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

// TestLongAssignmentsAreReportedAndFixed compares reports and fixes with those that testdata wants.
func TestLongAssignmentsAreReportedAndFixed(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), analyzer, "a")
}
