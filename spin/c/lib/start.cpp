/* What handlers in C++ need of a run time: constructors of variables run before the first handler, destructors never do, and there is no heap. */
#include <stddef.h>
#include <stdlib.h>

extern "C" {
void __wasm_call_ctors(void);
__attribute__((export_name("_initialize"))) void _initialize(void) { __wasm_call_ctors(); }
int __cxa_atexit(void (*)(void *), void *, void *) { return 0; }
void __cxa_pure_virtual(void) { __builtin_trap(); }
void *__dso_handle;
}

void operator delete(void *, size_t) noexcept {}
void operator delete(void *) noexcept {}
