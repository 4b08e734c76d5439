// Package hpu runs handlers: it loads WebAssembly modules for the import module
// spin (docs/abi.md), checks them, makes them count the cycles they use, and
// executes them on the contexts of a device's handler processing units (HPUs,
// sPIN'17 §3).
//
//   - [Load] checks a module against the ABI and a device's [Spec] and rewrites
//     it: every basic block is charged from the device's [CostTable], loops and
//     function entries watch the budget, recursion and the shadow stack are
//     bounded, and NaN results of arithmetic are made canonical, so that
//     results and counts are the same on every engine and machine.
//   - An [Engine] compiles a [Module] to an [Image]; each owner instantiates
//     its own [Program], a module instance with its memory.
//   - A [Context] of the program runs one handler at a time. A handler that has
//     to wait is suspended and resumed later; the suspended handlers of a
//     program may finish in any order.
//   - A [Device] carries out what handlers ask for. Package hpu checks
//     addresses, the device decides everything else.
//
// The package knows cycles, not time. An engine and everything made from it
// belong to one goroutine at a time; modules are read-only and may be shared.
package hpu
