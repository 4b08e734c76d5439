package main

import (
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/spin17"
	"github.com/spinsim/spinsim/handlers/graph"
)

func graphCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "graph",
		Short: "Search your own graphs by handlers and by hosts",
		Long: `A graph is text with a line for each edge: two vertices, which are numbers from 0, and a weight. The weight is an integer from 1; without it, it is 1. Empty lines and lines that begin
with # or % are ignored, so edge lists of SNAP and similar ones are valid graphs. Edges go both ways. A file that begins with %%MatrixMarket is a matrix in that format: square, of kind
coordinate, with integer values from 1, or with none (pattern). Its vertices count from 1; output shows numbers one less.

  spinsim graph run roads.txt

compare graph searches graphs that spinsim makes.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(graphRunCommand())
	return c
}

// graphRunName is the name of graph run in the record of a result.
const graphRunName = "graph run"

func graphRunCommand() *cobra.Command {
	c := fileCommand(graphRunName, "run FILE")
	c.Short = "Search a graph: breadth first, or shortest paths (sPIN'17, Simple Graph Kernels)"
	c.Long += "\n\n- is the standard input."
	c.Flags().Lookup("root").DefValue = "" // it depends on the graph
	return c
}

// readGraph makes an experiment from a graph.
func readGraph(m *making, name, _ string) (*experiment.Experiment, error) {
	var g *graph.Graph
	err := m.input(name, func(r io.Reader) (err error) {
		called := name
		if name == "-" {
			called = "standard input"
		}
		g, err = graph.Read(called, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return spin17.GraphOf(filepath.Base(name), g), nil
}
