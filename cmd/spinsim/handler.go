package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/build"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/lab/handlerlab"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/scaffold"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/profile"
)

func handlerCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "handler",
		Short: "Write, build, inspect and run packet handlers",
		Long: `A handler is a small function that runs on the network interface when a message arrives: once for its header, once for each packet,
once at its end. It is written in Go (compiled by TinyGo), C, C++, Rust or AssemblyScript, and loaded as a WebAssembly module.

  spinsim handler new filter                                a folder with a handler, its test, its packets
  spinsim handler build filter                              compile it to filter/filter.wasm
  spinsim handler inspect filter/filter.wasm                check it as a device does, and show its costs
  spinsim handler check mine.wasm --for rdma.engine         try it in the place of a library's
  spinsim handler run filter/filter.wasm --hex '01000000'   send it a message and show its actions
  spinsim handler profile count --hex '00*9000'             show its cycles, line by line

Built-in modules, which go by their names: ` + strings.Join(handlers.Names(), ", ") + ".",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(handlerNewCommand(), handlerBuildCommand(), handlerInspectCommand(), handlerCheckCommand(), handlerRunCommand(), handlerProfileCommand())
	return c
}

func handlerNewCommand() *cobra.Command {
	var o scaffold.Options
	var slot string
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a folder with a new handler that builds and passes its test",
		Long: `New makes the folder NAME with a handler that counts and deposits arriving messages. The folder also has the handler's test, packets to
try it with, and a README with the next steps. NAME may be a path; its last part is the name of the handler.

A handler in Go is a separate module, which needs package spin of spinsim. Within a clone of the repository, or with a spinsim
built from one, it uses that clone. Otherwise it requires the version of this spinsim.`,
		Args: exactArguments("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkLang(&o.Lang); err != nil {
				return err
			}
			o.Dir = args[0]
			if c.Flags().Changed("for") {
				var err error
				if o.Slot, err = handlers.SlotNamed(experiment.Slots(), slot); err != nil {
					return badInput(fmt.Errorf("--for: %w", err))
				}
			}
			files, err := scaffold.New(o)
			if err != nil {
				return badInput(err)
			}
			out := c.OutOrStdout()
			for _, f := range files {
				fmt.Fprintln(out, f)
			}
			fmt.Fprintf(out, "\nNext: see %s\n", filepath.Join(o.Dir, "README.md"))
			return nil
		},
	}
	c.Flags().StringVar((*string)(&o.Lang), "lang", "go", "`LANGUAGE`: "+langNames)
	c.Flags().StringVar(&slot, "for", "", "`SLOT` where the handlers are to run, such as rdma.engine: the library's own source to change, in Go, or in C if it is in C")
	c.Flags().StringVar(&o.Replace, "spinsim", "", "clone of the spinsim repository for the handler: `FOLDER`")
	return c
}

func handlerBuildCommand() *cobra.Command {
	var out string
	var o build.Options
	c := &cobra.Command{
		Use:   "build [FOLDER]",
		Short: "Compile a handler to a WebAssembly module",
		Long: `Build compiles the handler in FOLDER, by default the current one: a Go main package with TinyGo, all .c and .cpp files with
clang, a Rust crate without its standard library (lib.rs) with rustc, or index.ts with the AssemblyScript compiler. spinsim doctor lists the
installed compilers; scripts/install-tinygo.sh of the repository installs them. Compiler warnings go to standard error.

The module contains the source lines of its code, for traps and profiles. With --strip it does not: then equal sources give equal bytes on
every machine.

Handlers written for PsPIN, FPsPIN or the toolchain of the sPIN paper compile unchanged: their headers exist under the same names, and
-D names the functions that handle messages (docs/porting.md).`,
		Example: `  spinsim handler build filter
  spinsim handler build -I headers -D LIMIT=16 filter
  spinsim handler build -D SPIN_PAYLOAD=reduce_ph -D SPIN_COMPLETION=reduce_th reduce`,
		Args: atMostOne("FOLDER"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkLang(&o.Lang); err != nil {
				return err
			}
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			if out == "" {
				abs, err := filepath.Abs(dir)
				if err != nil {
					return badInput(err)
				}
				out = filepath.Join(dir, filepath.Base(abs)+".wasm")
			}
			o.Warnings = c.ErrOrStderr()
			if err := o.Build(dir, out); err != nil {
				return badInput(err)
			}
			info, err := os.Stat(out)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %d bytes\n", out, info.Size())
			return nil
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "module to write: `FILE.wasm` (default: in FOLDER, with its name)")
	c.Flags().StringVar((*string)(&o.Lang), "lang", "", "`LANGUAGE`: "+langNames+" (default: by the files in FOLDER)")
	c.Flags().BoolVar(&o.Strip, "strip", false, "leave out the source lines of the code: smaller, and the same bytes on every machine")
	c.Flags().StringArrayVarP(&o.Include, "include", "I", nil, "C, C++: search headers in a `FOLDER`; may be repeated")
	c.Flags().StringArrayVarP(&o.Define, "define", "D", nil, "C, C++: define a macro, `NAME[=VALUE]`; may be repeated")
	return c
}

// langNames lists the languages of handlers in words. People write Go, with or
// without the name of its compiler.
var langNames = strings.Replace(build.LangNames(), string(build.TinyGo), "go", 1)

// checkLang refuses an unknown language; "" is the default.
func checkLang(lang *build.Lang) error {
	if *lang == "go" {
		*lang = build.TinyGo
	}
	if *lang == "" || slices.Contains(build.Langs(), *lang) {
		return nil
	}
	return badInput(fmt.Errorf("--lang: %q, expected %s", *lang, langNames))
}

// atMostOne accepts one argument or none.
func atMostOne(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return exactArguments(name)(c, args)
		}
		return nil
	}
}

// deviceFlags choose the device.
type deviceFlags struct {
	profile   string
	overrides []string
	format    string
}

func (f *deviceFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.profile, "profile", "spin-dis", "device and network: `NAME` or file")
	flags.StringArrayVar(&f.overrides, "set", nil, "change a value of the profile: `PATH=VALUE`, such as hpu.cores=8; may be repeated")
	flags.StringVar(&f.format, "format", "text", "text or json")
}

// open returns the device, and the module that the argument names.
func (f *deviceFlags) open(name string) (*profile.Profile, *handlers.Library, error) {
	var errs []error
	if f.format != "text" && f.format != "json" {
		errs = append(errs, fmt.Errorf("--format: no format %q, expected text or json", f.format))
	}
	p, err := cli.LoadProfile(f.profile, f.overrides...)
	errs = append(errs, err)
	m, err := handlers.Open(name)
	errs = append(errs, err)
	if m != nil {
		errs = append(errs, profile.CheckServe(f.overrides, []string{m.Served()}))
	}
	return p, m, badInput(errors.Join(errs...))
}

// record records the module and the device that a result is made from.
func (f *deviceFlags) record(c *cobra.Command, p *profile.Profile, m *handlers.Library) (*provenance.Record, error) {
	profile, err := provenance.NewProfile(p)
	if err != nil {
		return nil, err
	}
	r := &provenance.Record{
		Build: thisBuild(), Command: "handler " + c.Name(), Profiles: []provenance.Profile{profile},
		Handlers: []provenance.Handler{provenance.NewHandler(m.Name, m.Path, m.Wasm)},
	}
	return r, r.WithArguments(flagsGiven(c))
}

// writeLines writes the readable part of a record below a result.
func writeLines(w io.Writer, r *provenance.Record, before ...string) error {
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(append(before, r.Lines()...), "\n"))
	return err
}

// writeWithOrigin writes an object as a line of JSON. Its origin is the first
// field and its seal the last. failed is what has ended the run early.
func writeWithOrigin(out io.Writer, r *provenance.Record, v any, failed error) error {
	var b bytes.Buffer
	b.WriteString(`{"provenance":`)
	for i, part := range []any{r, v} {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		at := b.Len()
		if err := e.Encode(part); err != nil {
			return err
		}
		if i == 0 {
			b.Truncate(b.Len() - 1)
			continue
		}
		b.Bytes()[at] = ',' // replaces the opening bracket of the object
	}
	sealed, err := seal.Object(b.Bytes(), cli.CutBy(failed))
	if err != nil {
		return err
	}
	_, err = out.Write(sealed)
	return err
}

// writeIndented is writeWithOrigin with one value per line.
func writeIndented(w io.Writer, r *provenance.Record, v any, failed error) error {
	var line, out bytes.Buffer
	if err := errors.Join(writeWithOrigin(&line, r, v, failed), json.Indent(&out, line.Bytes(), "", "  ")); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// inspected are facts behind all fields of a profile that a loader reads.
var inspected = used.Of(used.Module, used.Handler, used.HPU, used.Pool)

func handlerInspectCommand() *cobra.Command {
	var f deviceFlags
	var memory string
	c := &cobra.Command{
		Use:   "inspect MODULE",
		Short: "Check a module as a device does: exports, costs, memory, reasons to reject it",
		Long: `Inspect checks a module, a .wasm file or a built-in one, as the loader of a device does. It prints the module's manifest
(its handlers, the layout of its state, its needs) and every reason for which the device rejects the module. If there is such a reason, the exit
status is 2. Cycles come from the cost table of the profile.`,
		Args: exactArguments("MODULE"),
		RunE: func(c *cobra.Command, args []string) error {
			p, m, err := f.open(args[0])
			if err != nil {
				return err
			}
			size, err := handlerlab.ParseMemory(memory)
			if err != nil {
				return badInput(fmt.Errorf("--memory: %w", err))
			}
			record, err := f.record(c, p, m)
			if err != nil {
				return err
			}
			in := handlerlab.Inspect(m, p, size)
			record.Unused = profile.Unused(f.overrides, inspected)
			if f.format == "json" {
				err = writeIndented(c.OutOrStdout(), record, in, nil)
			} else {
				err = errors.Join(in.Write(c.OutOrStdout()), writeLines(c.OutOrStdout(), record, record.UnusedNotes()...))
			}
			return errors.Join(err, badInput(in.Err()))
		},
	}
	f.register(c)
	c.Flags().StringVar(&memory, "memory", "64KiB", "HPU memory of a program, for the memory map: `BYTES`")
	return c
}
