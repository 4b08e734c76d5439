// Package hpu runs handlers. It loads WebAssembly modules for the import module
// spin (docs/abi.md), checks them, makes them count the cycles they use, and
// executes them on the contexts of a device's handler processing units (HPUs,
// sPIN'17 §3).
//
//   - [Load] checks a module against the ABI and a device's [Spec] and rewrites
//     it. Every basic block is charged from the device's [CostTable]. Loops and
//     function entries check the budget. Recursion and the shadow stack are
//     bounded. NaN results of arithmetic are made canonical. So results and
//     counts are the same on every engine and machine.
//   - An [Engine] compiles a [Module] to an [Image]. Each owner instantiates its
//     own [Program], with its own memory.
//   - A [Context] of the program runs one handler at a time. A handler that must
//     wait is suspended and resumed later. The suspended handlers of a program
//     may finish in any order.
//   - A [Device] carries out the requests of handlers. Package hpu checks
//     addresses; the device decides everything else.
//
// The package counts cycles, not time. An engine and everything made from it
// belong to one goroutine at a time. Modules are read-only and may be shared.
package hpu
