// Package rapidtest lets go test make fewer checks of random properties, in
// packages whose tests import it. Each run draws others, and step deep of
// .ci/run makes many. Importing it is enough:
//
//	import _ "github.com/spinsim/spinsim/internal/rapidtest"
package rapidtest

import (
	"flag"
	"os"
	"slices"

	_ "pgregory.net/rapid" // defines the flag
)

// checks of each property, a quarter of what rapid makes. -rapid.checks=100 is
// stronger.
const checks = "25"

func init() {
	if slices.Contains(os.Args, "-test.short=true") {
		return // rapid makes a fifth then; two reductions would leave too little
	}
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err) //lint:panic rapid has no such flag any more
	}
}
