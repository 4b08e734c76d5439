package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/capture"
)

// pcapCommand has commands that go with captures.
func pcapCommand() *cobra.Command {
	var dissector bool
	c := &cobra.Command{
		Use:   "pcap --dissector",
		Short: "Print the program that Wireshark needs to read captures",
		Long: `Runs can write the packets of any link for Wireshark:

  spinsim scenario example count > count.yaml
  spinsim run count.yaml --pcap count.pcapng --pcap-at node=1
  spinsim pcap --dissector > spinsim.lua
  tshark -X lua_script:spinsim.lua -r count.pcapng

Each direction of a link is an interface. docs/reports.md describes the layout.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if !dissector {
				return badInput(errors.New("pcap: expected --dissector; captures are written by --pcap of run and compare"))
			}
			_, err := io.WriteString(c.OutOrStdout(), capture.Dissector)
			return err
		},
	}
	c.Flags().BoolVar(&dissector, "dissector", false, "print the dissector, a program in Lua")
	return c
}
