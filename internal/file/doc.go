// Package file reads and writes the files that a user names.
//
// Reading is bounded: a device that never ends is refused at the bound of its
// kind of file. Writing leaves either the whole new file or what was there
// before: the bytes go to a temporary name in the same folder, which
// [Writer.Commit] renames.
package file
