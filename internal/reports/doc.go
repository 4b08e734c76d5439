// Package reports makes pages (package internal/page) from results: from
// documents that commands write with --format json, and from sweeps that have
// just run.
//
// A page of an experiment has more than the rows of its document. The package
// rebuilds the sweep from its provenance, without measuring anything. Then the
// answer, the table for people, the picture and the published numbers equal the
// output of the original command. For other documents, every list of objects is
// a table.
package reports
