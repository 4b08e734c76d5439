package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

// Values returns the values of a flag or argument, for completion in shells.
// Each is a name, or a name, a tab and a description.
type Values func(c *cobra.Command) []string

// Keys of annotations of flags with the values to suggest. oneOf is for a flag
// with one value, listOf for a list with commas. Cobra gets them only when a
// shell asks, because it keeps every command with a completion function as long
// as the program runs, and a program may run many commands.
const (
	oneOf  = "spinsim_value"
	listOf = "spinsim_list"
)

// Suggest sets the completion of a flag. Each value is a name, or a name, a tab
// and a description. It panics if the command has no such flag: a programmer's
// mistake.
func Suggest(c *cobra.Command, flag string, values ...string) {
	key := oneOf
	if _, list := c.Flags().Lookup(flag).Value.(pflag.SliceValue); list {
		key = listOf
	}
	suggest(c, flag, key, values)
}

// SuggestList is Suggest for a flag with a list of values in one text.
func SuggestList(c *cobra.Command, flag string, values ...string) { suggest(c, flag, listOf, values) }

func suggest(c *cobra.Command, flag, key string, values []string) {
	if err := c.Flags().SetAnnotation(flag, key, values); err != nil {
		panic("cli: " + err.Error()) //lint:panic programmer's mistake
	}
}

// SuggestArgument sets the completion of a command's first argument. files:
// complete the names of files, too.
func SuggestArgument(c *cobra.Command, files bool, values Values) {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, directive := complete(false, values)(c, args, begun)
		if files {
			directive = cobra.ShellCompDirectiveDefault
		}
		return found, directive
	}
}

// complete completes a value, or the last value of a list with commas.
func complete(list bool, values Values) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		before := ""
		if list {
			before = begun[:strings.LastIndexByte(begun, ',')+1]
		}
		there := strings.Split(before, ",")
		for _, value := range values(c) {
			name, _, _ := strings.Cut(value, "\t")
			if strings.Contains(name, "@") && !strings.Contains(begun[len(before):], "@") {
				continue // dated profiles, of which there are many
			}
			// a list has each value once
			if strings.HasPrefix(before+value, begun) && !slices.Contains(there, name) {
				found = append(found, before+value)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// suggestValues gives cobra the completion of a command's flags: the command's
// own, or else the common one for the flag's name.
func suggestValues(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		of := func(values []string) Values { return func(*cobra.Command) []string { return values } }
		var how cobra.CompletionFunc
		switch values, endings := common[f.Name], fileFlags[f.Name]; {
		case f.Annotations[oneOf] != nil:
			how = complete(false, of(f.Annotations[oneOf]))
		case f.Annotations[listOf] != nil:
			how = complete(true, of(f.Annotations[listOf]))
		case f.Name == "set":
			how = completeOverride
		case f.Name == "param":
			how = completeParameter
		case values != nil:
			how = complete(f.Value.Type() == "stringSlice", values)
		case endings != nil:
			how = cobra.FixedCompletions(endings, cobra.ShellCompDirectiveFilterFileExt)
		default:
			return
		}
		if err := c.RegisterFlagCompletionFunc(f.Name, how); err != nil {
			panic("cli: " + err.Error()) //lint:panic a root is completed twice: a programmer's mistake
		}
	})
}

// common are the values of flags that have the same meaning in all commands.
var common = map[string]Values{
	"profile":   func(*cobra.Command) []string { return Profiles() },
	"waterfall": func(*cobra.Command) []string { return Profiles() },
	"engine":    func(*cobra.Command) []string { return engines() },
	"format": func(*cobra.Command) (names []string) {
		for _, f := range report.Formats {
			names = append(names, string(f))
		}
		return names
	},
}

// fileFlags are flags with a file, and the endings of its name.
var fileFlags = map[string][]string{
	"plot": {"svg", "png"}, "svg": {"svg", "png"}, "trace": {"pftrace", "json", "gz"}, "handler": {"wasm"}, "links": {"json"}, "samples": {"csv", "json"}, "load": {"json"}, "pcap": {"pcapng"},
}

// Profiles are the embedded profiles with their descriptions, and dated ones,
// for completion.
func Profiles() (list []string) {
	for _, name := range profile.Names() {
		for _, name := range append([]string{name}, profile.Dated(name)...) {
			if p, err := profile.Load(name); err == nil {
				list = append(list, name+"\t"+p.Description)
			}
		}
	}
	return list
}

// engines lists the engines of this program.
func engines() (names []string) {
	for _, name := range []string{"wazero", "wasmtime"} {
		if runtime.CheckEngine(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// knowing is the value of the flag --param, with a function that lists the
// names it accepts. args are the arguments of the command.
type knowing struct {
	pflag.Value
	pflag.SliceValue
	names func(args []string) []string
}

// SuggestParameters sets the completion of the names in --param. args are the
// arguments of the command. It panics if the command has no such flag: a
// programmer's mistake.
func SuggestParameters(c *cobra.Command, names func(args []string) []string) {
	f := c.Flags().Lookup("param")
	list, is := f.Value.(pflag.SliceValue)
	if !is {
		panic("cli: --param is no list") //lint:panic programmer's mistake
	}
	f.Value, f.DefValue = knowing{f.Value, list, names}, "" // else the help would show a default
}

// completeParameter completes the name of a parameter, or its value if a flag
// of that name has values.
func completeParameter(c *cobra.Command, args []string, begun string) (found []cobra.Completion, directive cobra.ShellCompDirective) {
	name, value, assigned := strings.Cut(begun, "=")
	if assigned {
		f := c.Flags().Lookup(name)
		if f == nil || f.Annotations[listOf] == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		values, _ := complete(true, func(*cobra.Command) []string { return f.Annotations[listOf] })(c, args, value)
		for _, one := range values {
			found = append(found, name+"="+one)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
	if list, is := c.Flags().Lookup("param").Value.(knowing); is {
		for _, one := range list.names(args) {
			if strings.HasPrefix(one, name) {
				found = append(found, one+"=")
			}
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeOverride completes the path of an override, section by section.
func completeOverride(_ *cobra.Command, _ []string, begun string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, path := range profile.Fields() {
		rest, is := strings.CutPrefix(path, begun)
		if !is {
			continue
		}
		next := path + "="
		if section, _, below := strings.Cut(rest, "."); below {
			next = begun + section + "."
		}
		if !slices.Contains(found, next) {
			found = append(found, next)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
