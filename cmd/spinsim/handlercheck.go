package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/sim"
)

// checkEvents ends a trial whose handlers keep the simulation going without
// getting anywhere.
const checkEvents = 10_000_000

func handlerCheckCommand() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "check MODULE",
		Short: "Try a module in a slot of the experiments",
		Long: `Check compares a module with the contract of a slot, and then runs it there in small points of all experiments that have the slot. Every byte
that these points compare must be right. Without MODULE it shows the contract.

Slots: ` + slotList() + `.`,
		Example: `  spinsim handler check --for rdma.engine
  spinsim handler check mine.wasm --for rdma.engine`,
		Args: atMostOne("MODULE"),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("for") {
				return badInput(errors.New("--for: expected a slot: " + slotList()))
			}
			slot, err := handlers.SlotNamed(experiment.Slots(), name)
			if err != nil {
				return badInput(fmt.Errorf("--for: %w", err))
			}
			if len(args) == 0 {
				_, err := fmt.Fprint(c.OutOrStdout(), slot.Text())
				return err
			}
			l, err := handlers.Open(args[0])
			if err != nil {
				return badInput(err)
			}
			return checkModule(c, slot, l)
		},
	}
	c.Flags().StringVar(&name, "for", "", "`SLOT` where the module is to run")
	return c
}

func slotList() string {
	var names []string
	for _, s := range experiment.Slots() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// checkModule shows a line for each trial. Its error counts those that failed.
func checkModule(c *cobra.Command, slot *handlers.Slot, l *handlers.Library) error {
	out := c.OutOrStdout()
	trials, failed := 0, 0
	err := experiment.Conform(c.Context(), slot, l, sim.Limits{Events: checkEvents}, func(t *experiment.Trial) {
		trials++
		if t.Err == nil {
			fmt.Fprintf(out, "ok    %s, %s\n", t.Experiment, t.Point)
			return
		}
		failed++
		fmt.Fprintf(out, "FAIL  %s\n", strings.Replace(t.Err.Error(), slot.Rules(l.Name), "", 1))
	})
	switch {
	case err != nil && trials == 0 && c.Context().Err() == nil:
		return badInput(err)
	case err != nil:
		return err
	case failed > 0:
		return fmt.Errorf("%d of %d trials failed%s", failed, trials, slot.Rules(l.Name))
	}
	_, err = fmt.Fprintf(out, "\n%s keeps to slot %s: the bytes were right in %d trials.\n", l.Name, slot.Name, trials)
	return err
}
