// Package file reads and writes the files that a user names.
//
// Reading is bounded: a device that never ends is refused at the bound for its
// kind of file. Writing leaves either the whole new file or the old one: the
// bytes go to a temporary name in the same folder, and [Writer.Commit] renames
// it.
package file
