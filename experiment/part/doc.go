// Package part has the experiments of PART: page faults of RDMA (PART'22,
// Psistakis'19), one file for each.
package part
