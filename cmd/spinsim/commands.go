package main

import "github.com/spf13/cobra"

// commands lists the commands in the order of the help text, for the arguments
// of the program.
func commands(args []string) []*cobra.Command {
	return []*cobra.Command{
		compareCommand(args),
		osuCommand(),
		handlerCommand(),
		adviseCommand(),
		runCommand(),
		scenarioCommand(),
		explainCommand(),
		goalCommand(),
		profileCommand(),
		topologyCommand(),
		storageCommand(),
		graphCommand(),
		sweepCommand(),
		rerunCommand(),
		reportCommand(),
		verifyCommand(),
		reproduceCommand(),
		ledgerCommand(),
		identifyCommand(),
		pcapCommand(),
		versionCommand(),
		doctorCommand(),
		manCommand(),
		columnsTopic(),
	}
}
