// Package reports makes pages (package internal/page) of results: of the
// documents that commands write with --format json, and of sweeps that have
// just run.
//
// A document of an experiment is more than its rows: the sweep is made again
// from its provenance, without measuring anything, so that the answer, the
// table for people, the picture and the published numbers are those of the
// command that wrote it. Of other documents every list of objects is a table.
package reports
