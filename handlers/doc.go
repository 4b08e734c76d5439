// Package handlers finds the built-in handler libraries and installs handlers,
// from these libraries or from users.
//
// A library is a module with a manifest (package internal/manifest): its
// handlers, the layout of its state and its needs. A program that installs one
// names fields of the state, not bytes. The manifest has the defaults for
// everything else:
//
//	count, err := handlers.Open("count")                  // or a file, or handlers.New(name, wasm)
//	module, err := count.Load(cluster)                    // once for each cluster
//	in, err := module.Install(process, handlers.Options{State: map[string]any{"packets": 7}})
//	entry := portals.ME{…}
//	in.Attach(&entry)                                     // its handlers, and the options that they need
//	…
//	err = in.Read(&state)                                 // a struct, by the names of its fields
//
// Modules without a manifest are installed as well; their state is bytes.
//
//	registry.go  the built-in libraries, and files
//	choose.go    which exports handle header, packets and end of a message
//	install.go   HPU memory, state and the handler part of an entry
//	setup.go     counters, queues and entries of clients and servers
//
// The sub-packages are the built-in libraries, one folder each: compiled
// module, source and the types that hosts share with it.
package handlers
