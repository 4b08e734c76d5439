package main

import "github.com/spf13/cobra"

// commands lists the commands in the order of the help text.
func commands() []*cobra.Command {
	return []*cobra.Command{
		compareCommand(),
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
		pcapCommand(),
		versionCommand(),
		doctorCommand(),
		manCommand(),
		columnsTopic(),
	}
}
