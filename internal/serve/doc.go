// Package serve shows experiments as a page in the browser of this machine. The
// page measures nothing itself: each of its runs is the command that it shows,
// started as a program of its own. So it shows the bytes of the command line, it
// can be ended, and the limits of a command hold for it.
//
// What a request may choose are axes, embedded profiles and modules that were
// sent, checked before a program starts. No text of a request becomes the name
// of a file: a program runs in a folder of its own, and a text without a list of
// values may contain no separator of paths.
package serve
