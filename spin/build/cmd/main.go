// Command cmd compiles one handler folder to a wasm module, for go generate:
//
//	go run github.com/spinsim/spinsim/spin/build/cmd [-lang tinygo|c] -o OUT.wasm FOLDER
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/spinsim/spinsim/spin/build"
)

func main() {
	lang := flag.String("lang", "", "language: tinygo or c (default: by the files in the folder)")
	out := flag.String("o", "", "wasm module to write")
	flag.Parse()
	if flag.NArg() != 1 || *out == "" {
		fmt.Fprintln(os.Stderr, "usage: cmd [-lang tinygo|c] -o OUT.wasm FOLDER")
		os.Exit(2)
	}
	if err := build.Build(flag.Arg(0), build.Lang(*lang), *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
