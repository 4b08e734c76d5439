package goal

import "fmt"

// SyntaxError reports an error in a schedule in text form.
type SyntaxError struct {
	// File is the name given to the reader, or "".
	File string
	// Line and Column count from 1; Column counts bytes.
	Line, Column int
	// Msg names the text found and the text expected.
	Msg string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s%d:%d: %s", prefix(e.File), e.Line, e.Column, e.Msg)
}

// FormatError reports an error in a schedule in binary form.
type FormatError struct {
	// File is the name given to the reader, or "".
	File string
	// Offset is the position in the unpacked file, in bytes from its start.
	Offset int64
	// Msg names the value found and the value expected.
	Msg string
	// Err is the error of the underlying reader, if that is the cause.
	Err error
}

func (e *FormatError) Error() string {
	msg := fmt.Sprintf("%soffset %d: %s", prefix(e.File), e.Offset, e.Msg)
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Unwrap returns the error of the underlying reader.
func (e *FormatError) Unwrap() error { return e.Err }

func prefix(file string) string {
	if file == "" {
		return ""
	}
	return file + ":"
}
