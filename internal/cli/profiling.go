package cli

import (
	"bytes"
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/pprof"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spinsim/spinsim/internal/file"
)

const cpuProfile, memProfile = "cpuprofile", "memprofile"

// profiling writes profiles of the program itself: where it spends its time,
// and what allocates its memory. They are for those who change it, so help does
// not list the flags; docs/performance.md does.
type profiling struct {
	cpu, mem string // files; "": none
	samples  bytes.Buffer
}

// profileFlags gives all commands the flags.
func profileFlags(flags *pflag.FlagSet) {
	flags.String(cpuProfile, "", "write where the program spends its time to a `FILE` for go tool pprof")
	flags.String(memProfile, "", "write what the program allocates to a `FILE` for go tool pprof")
	for _, name := range []string{cpuProfile, memProfile} {
		flags.Lookup(name).Hidden = true
	}
}

// profile begins to sample the command if its flags ask for it. The files have
// been checked.
func (e *ending) profile(c *cobra.Command) error {
	if e == nil {
		return nil
	}
	p := &profiling{cpu: c.Flag(cpuProfile).Value.String(), mem: c.Flag(memProfile).Value.String()}
	for _, name := range []string{cpuProfile, memProfile} {
		if c.Flag(name).Value.String() == "-" {
			return BadInput(fmt.Errorf("--%s: -, expected the name of a file", name))
		}
	}
	if p.cpu != "" {
		if err := pprof.StartCPUProfile(&p.samples); err != nil {
			return BadInput(fmt.Errorf("--%s: %w", cpuProfile, err))
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.profiling = p
	return nil
}

// end ends the sampling. It writes the files, unless nothing has run.
func (p *profiling) end(code int) error {
	if p == nil {
		return nil
	}
	var errs []error
	if p.cpu != "" {
		pprof.StopCPUProfile()
		if code != ExitInput {
			errs = append(errs, file.Write(p.cpu, p.samples.Bytes()))
		}
	}
	if p.mem != "" && code != ExitInput {
		goruntime.GC() // a profile has what was there at the last collection
		var b bytes.Buffer
		errs = append(errs, pprof.Lookup("allocs").WriteTo(&b, 0), file.Write(p.mem, b.Bytes()))
	}
	return errors.Join(errs...)
}
