/* assert.h: a failed assertion is a line of the log and ends the handler (docs/handlers.md, The C library). */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#include <stdio.h>
#include <stdlib.h>
#define assert(condition) ((condition) ? (void)0 : (printf("%s:%d: assertion failed: %s", __FILE__, __LINE__, #condition), abort()))
#endif
#if !defined(static_assert) && !defined(__cplusplus)
#define static_assert _Static_assert
#endif
