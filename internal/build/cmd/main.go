// Command cmd compiles one handler folder to a wasm module, for go generate:
//
//	go run github.com/spinsim/spinsim/internal/build/cmd [-lang tinygo|c] [-g] -o OUT.wasm FOLDER
//
// The module has no debugging information unless -g asks for it.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/spinsim/spinsim/internal/build"
)

func main() {
	lang := flag.String("lang", "", "language: tinygo or c (default: by the files in the folder)")
	out := flag.String("o", "", "wasm module to write")
	debug := flag.Bool("g", false, "keep which lines of the source the code comes from")
	flag.Parse()
	if flag.NArg() != 1 || *out == "" {
		fmt.Fprintln(os.Stderr, "usage: cmd [-lang tinygo|c] [-g] -o OUT.wasm FOLDER")
		os.Exit(2)
	}
	o := build.Options{Lang: build.Lang(*lang), Strip: !*debug}
	if err := o.Build(flag.Arg(0), *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
