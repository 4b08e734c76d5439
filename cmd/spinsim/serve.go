package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/serve"
)

// serveCommand shows experiments in the browser.
func serveCommand() *cobra.Command {
	var port, threads int
	c := &cobra.Command{
		Use:   "serve",
		Short: "Show experiments in the browser of this machine: choose, run, see, compare",
		Long: `Serve prints the address of a page where you choose an experiment, move its axes, put your own modules into its slots, and see answer, picture,
table, breakdown and timeline of each run beside the command that makes the same bytes.

  spinsim serve

The page is for this machine and for who has the printed address: it listens on 127.0.0.1 only and needs no network. A run is the command that the page
shows; two run at once, others wait, and each ends after 10 minutes. --memory-limit and --threads are for all runs together. Everything that runs
and modules have written is removed at the end, by Ctrl-C.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return servePage(c, port, threads) },
	}
	c.Flags().IntVar(&port, "port", 0, "listen on the `PORT`; 0: any that is free")
	c.Flags().IntVar(&threads, "threads", 0, "take this `NUMBER` of processors of the machine for runs; 0: all")
	return c
}

// slow is how long a browser may take to ask, longer than any on this machine.
const slow = 10 * time.Second

func servePage(c *cobra.Command, port, threads int) error {
	if port < 0 || port > 65535 {
		return badInput(fmt.Errorf("--port: %d, expected 0 to 65535", port))
	}
	if threads < 0 {
		return badInput(fmt.Errorf("--threads: %d, expected a number, or 0 for all", threads))
	}
	if threads == 0 {
		threads = cli.Workers()
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ctx := c.Context()
	o := serve.Options{Program: program, Build: thisBuild().Line(), Memory: cli.MemoryLimit(ctx), Threads: threads}
	if err := o.Check(); err != nil {
		return badInput(fmt.Errorf("--memory-limit: %w", err))
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	o.Host = l.Addr().String()
	s, err := serve.New(ctx, o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	h := &http.Server{Handler: s, ReadHeaderTimeout: slow, MaxHeaderBytes: 1 << 16}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	fmt.Fprintln(c.OutOrStdout(), s.URL())
	if err = h.Serve(l); errors.Is(err, http.ErrServerClosed) {
		err = context.Cause(ctx) // a limit
	}
	if errors.Is(err, context.Canceled) {
		err = nil // a signal is how it ends
	}
	return errors.Join(err, s.Close())
}
