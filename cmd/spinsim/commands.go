package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// commands lists the commands in the order of the help text. Each is made by a
// function: to make all takes longer than what most of them do.
func commands(args []string) []command {
	return []command{
		{"compare", func() *cobra.Command { return compareCommand(args) }},
		{"osu", osuCommand},
		{"handler", handlerCommand},
		{"port", portCommand},
		{"advise", adviseCommand},
		{"run", runCommand},
		{"scenario", scenarioCommand},
		{"explain", explainCommand},
		{"goal", goalCommand},
		{"mpirun", mpirunCommand},
		{"profile", profileCommand},
		{"topology", topologyCommand},
		{"storage", storageCommand},
		{"graph", graphCommand},
		{"sweep", sweepCommand},
		{"rerun", rerunCommand},
		{"report", reportCommand},
		{"serve", serveCommand},
		{"verify", verifyCommand},
		{"reproduce", reproduceCommand},
		{"ledger", ledgerCommand},
		{"identify", identifyCommand},
		{"pcap", pcapCommand},
		{"version", versionCommand},
		{"doctor", doctorCommand},
		{"man", manCommand},
		{"columns", columnsTopic},
	}
}

type command struct {
	name string
	make func() *cobra.Command
}

// addCommands adds the command that the arguments of the program name. Without
// a name, or where the words after it are a mistake, whose error may suggest any
// command, it adds all.
func addCommands(root *cobra.Command, args []string) {
	for len(args) > 0 && (args[0] == "-q" || args[0] == "--quiet") {
		args = args[1:]
	}
	all := commands(args)
	if k := slices.IndexFunc(all, func(c command) bool { return len(args) > 0 && c.name == args[0] }); k >= 0 {
		c := all[k].make()
		root.AddCommand(c)
		of, left, err := root.Find(args)
		if err == nil && (!of.HasSubCommands() || len(left) == 0 || strings.HasPrefix(left[0], "-")) {
			return
		}
		root.RemoveCommand(c)
	}
	for _, c := range all {
		root.AddCommand(c.make())
	}
	suggestFlags(root)
	suggestArguments(root)
}
