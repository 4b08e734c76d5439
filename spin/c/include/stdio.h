/* stdio.h: what handlers have of it (docs/handlers.md, The C library). */
#ifndef SPIN_STDIO_H
#define SPIN_STDIO_H

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line of the log for each call, at most 255 bytes of it; a newline at its end is left out. Conversions: d i u x X o c s p %, with flags, width,
 * precision and the lengths hh h l ll z t j. Any other is written as it stands. Returns the bytes of the whole line. */
__attribute__((format(printf, 1, 2))) int printf(const char *format, ...);
__attribute__((format(printf, 3, 4))) int snprintf(char *out, size_t size, const char *format, ...);
int vsnprintf(char *out, size_t size, const char *format, va_list args);
int puts(const char *line);

#ifdef __cplusplus
}
#endif

#endif
