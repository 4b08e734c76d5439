package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/examples/scenarios"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/build"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/goal/mpitrace"
	"github.com/spinsim/spinsim/internal/goal/proxy"
	"github.com/spinsim/spinsim/internal/osu"
	"github.com/spinsim/spinsim/internal/spc"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// suggestFlags lets shells complete the flags that have different values in
// different commands.
func suggestFlags(root *cobra.Command) {
	texts, languages := []string{"text", "json"}, langs()
	for path, values := range map[string][]string{
		"handler new --lang": languages, "handler build --lang": languages,
		"handler inspect --format": texts, "explain --format": texts, "version --format": texts,
		"goal run --on": {"model", "nodes"}, "goal run --model": {"loggops", "atlahs"}, "goal merge --place": {"packed", "strided"},
		"goal gen --to": {string(goal.Text), string(goal.Binary)}, "goal convert --to": {string(goal.Text), string(goal.Binary)},
		"goal merge --to":             {string(goal.Text), string(goal.Binary)},
		"goal import chakra --to":     {string(goal.Text), string(goal.Binary)},
		"goal import dumpi --to":      {string(goal.Text), string(goal.Binary)},
		"goal import liballprof --to": {string(goal.Text), string(goal.Binary)}, "goal import liballprof --mpi": mpitrace.LibraryNames(),
	} {
		suggest(root, path, values...)
	}
	for _, b := range osu.All() {
		of := "osu " + b.Name
		suggest(root, of+" --omb", names(osu.Styles())...)
		suggest(root, of+" --transport", "exanet", "portals", "portals-offload")
		formats := []string{osuFormat}
		for _, f := range report.Formats {
			formats = append(formats, string(f))
		}
		suggest(root, of+" --format", formats...)
		if b.Kind == osu.Collective {
			suggest(root, of+" --algorithms", names(mpi.AlgorithmChoices())...)
		}
	}
}

// langs lists the languages of handlers as --help does. People write go; tinygo
// is accepted, too.
func langs() (list []string) {
	for _, l := range build.Langs() {
		if l == build.TinyGo {
			l = "go"
		}
		list = append(list, string(l))
	}
	return list
}

// suggest lets shells complete the flag at the end of path, the words of a
// command.
func suggest(root *cobra.Command, path string, values ...string) {
	of, flag, _ := strings.Cut(path, " --")
	cli.Suggest(commandOf(root, of), flag, values...)
}

func commandOf(root *cobra.Command, path string) *cobra.Command {
	c, _, err := root.Find(strings.Fields(path))
	if err != nil || c.CommandPath() != root.Name()+" "+path {
		panic("main: no command " + path) //lint:panic programmer's mistake
	}
	return c
}

// names converts texts of a type of their own to strings.
func names[T ~string](list []T) (texts []string) {
	for _, name := range list {
		texts = append(texts, string(name))
	}
	return texts
}

// suggestArguments lets shells complete arguments that are names. Some of the
// commands also take the name of a file.
func suggestArguments(root *cobra.Command) {
	modules := func(*cobra.Command) []string { return handlers.Names() }
	profiles := func(*cobra.Command) []string { return cli.Profiles() }
	named := map[string]func(*cobra.Command) []string{
		"handler run": modules, "handler inspect": modules, "advise": modules,
		"profile": profiles, "topology": profiles,
		"profile costs":    func(*cobra.Command) []string { return profile.CostNames() },
		"scenario example": func(*cobra.Command) []string { return exampleNames() },
		"storage generate": func(*cobra.Command) []string { return loadNames() },
		"ledger":           func(*cobra.Command) []string { return ledgerNames() },
		"goal gen":         func(*cobra.Command) []string { return patternNames() },
	}
	takesFiles := []string{"handler run", "handler inspect", "advise", "profile", "topology", "goal gen"}
	for _, path := range slices.Sorted(maps.Keys(named)) {
		cli.SuggestArgument(commandOf(root, path), slices.Contains(takesFiles, path), named[path])
	}
}

func ledgerNames() (list []string) {
	for _, p := range ledger.Publications() {
		list = append(list, p.Tag)
	}
	return list
}

func exampleNames() (list []string) {
	all, err := scenarios.All()
	if err != nil {
		return nil // completion cannot report errors
	}
	for _, e := range all {
		list = append(list, e.Name)
	}
	return list
}

func loadNames() (list []string) {
	for _, m := range spc.Models {
		list = append(list, m.Name+"\t"+m.Description)
	}
	return list
}

func patternNames() (list []string) {
	for _, p := range goal.Patterns() {
		list = append(list, p.Name+"\t"+p.Doc)
	}
	return append(list, proxy.Names()...)
}
