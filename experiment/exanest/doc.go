// Package exanest has the experiments of the ExaNeSt prototype (FORTH-ICS
// TR-488), one file for each.
package exanest
