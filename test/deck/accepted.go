package main

// acceptedDifferences are texts that not all states show.
var acceptedDifferences = []*accepted{}

// knownErrors are errors of the console that Deck itself causes, whoever answers.
var knownErrors = []*accepted{}
