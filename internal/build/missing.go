package build

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	undefined = regexp.MustCompile(`undefined symbol: (\S+)`)
	function  = regexp.MustCompile(`^([A-Za-z_$][\w.$]*):`)
	location  = regexp.MustCompile(`^\s+\.loc\s.*# (\S+):(\d+):\d+$`)
	calling   = regexp.MustCompile(`^\s+call\s+([^\s,]+)`)
)

// callers lists the callers of functions that the linker has not found, one
// line for each place, "" if it finds none. The linker knows only the object
// files. args are the arguments of the compiler, not of the linker.
func callers(dir, compiler, tmp string, args, sources []string, messages string) string {
	wanted := make(map[string]bool)
	for _, m := range undefined.FindAllStringSubmatch(messages, -1) {
		wanted[m[1]] = true
	}
	if len(wanted) == 0 {
		return ""
	}
	var places []string
	listing := filepath.Join(tmp, "listing.s")
	for _, source := range sources {
		all := slices.Concat(args, []string{"-w", "-S", "-gline-tables-only", "-o", listing, source})
		if _, err := run(dir, compiler, all...); err != nil {
			continue // the linker's message has to suffice
		}
		if text, err := os.ReadFile(listing); err == nil {
			places = append(places, callsIn(string(text), wanted)...)
		}
	}
	return strings.Join(places, "")
}

// callsIn finds the calls of functions in an assembly listing of clang.
// Comments in the listing give the source lines.
func callsIn(listing string, wanted map[string]bool) (places []string) {
	in, at := "", ""
	for line := range strings.Lines(listing) {
		line = strings.TrimRight(line, "\r\n")
		if m := function.FindStringSubmatch(line); m != nil {
			in, at = m[1], ""
		} else if m := location.FindStringSubmatch(line); m != nil && m[2] != "0" {
			at = filepath.Base(m[1]) + ":" + m[2] + ": "
		} else if m := calling.FindStringSubmatch(line); m != nil && wanted[m[1]] {
			place := fmt.Sprintf("%sfunction %s calls %s, which is nowhere\n", at, in, m[1])
			if !slices.Contains(places, place) {
				places = append(places, place)
			}
		}
	}
	return places
}
