/* stdlib.h: what handlers have of it (docs/handlers.md, The C library). */
#ifndef SPIN_STDLIB_H
#define SPIN_STDLIB_H

#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 0x7fffffff

#ifdef __cplusplus
extern "C" {
#endif

/* A heap of SPIN_HEAP bytes (-D SPIN_HEAP=65536; the default is 16 KiB) in the module's own memory, which all handlers of an HPU memory share.
 * Addresses are multiples of 8. A lock keeps it whole: these calls may suspend. NULL: no room. */
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *old, size_t size);
void free(void *p);

/* One sequence for all handlers of an HPU memory, in the order in which they ask. */
int rand(void);
void srand(unsigned seed);

int abs(int n);
__attribute__((noreturn)) void abort(void);      /* ends the handler: FAIL */
__attribute__((noreturn)) void exit(int status); /* likewise */

#ifdef __cplusplus
}
#endif

#endif
