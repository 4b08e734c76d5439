// Command site makes a website of the repository's documents: README.md, docs,
// RATIONALE.md, CONTRIBUTING.md and the README.md of packages and examples,
// with the tutorial path at the side. It needs no network and gives the same
// bytes for the same files.
//
//	go run ./internal/site FOLDER
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/site FOLDER")
		os.Exit(2)
	}
	pages, err := build(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s; begin with index.html\n", pages, os.Args[1])
}
