/* Bytes, which clang turns into memory.copy and memory.fill, and a heap. */
#define SPIN_TAKES_TURNS /* the lock of the heap, in the modules of other toolchains */
#include <spin_sync.h>
#include <stdlib.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	return __builtin_memcpy(to, from, n);
}

void *memmove(void *to, const void *from, size_t n)
{
	return __builtin_memmove(to, from, n);
}

void *memset(void *to, int byte, size_t n)
{
	return __builtin_memset(to, byte, n);
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;
	for (; n > 0; n--, x++, y++) {
		if (*x != *y)
			return *x - *y;
	}
	return 0;
}

size_t strlen(const char *s)
{
	const char *end = s;
	while (*end)
		end++;
	return (size_t)(end - s);
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n > 0; n--, a++, b++) {
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	}
	return 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

#ifndef SPIN_HEAP
#define SPIN_HEAP 16384
#endif

/* A list of free blocks in the order of their addresses, first fit, neighbours joined (K&R, The C Programming Language, 8.7). */
typedef struct block {
	uint32_t size; /* with this header, bytes: a multiple of its size */
	struct block *next;
} block;

_Static_assert(SPIN_HEAP >= 64 && SPIN_HEAP % sizeof(block) == 0, "SPIN_HEAP: expected a multiple of 8 bytes, 64 at least");

static struct {
	uint32_t lock;
	uint32_t ready;
	block first; /* of no bytes */
	_Alignas(8) unsigned char bytes[SPIN_HEAP];
} heap;

void *malloc(size_t size)
{
	void *found = NULL;
	if (size == 0 || size > SPIN_HEAP)
		return NULL;
	uint32_t wanted = (uint32_t)(size + 2 * sizeof(block) - 1) / sizeof(block) * sizeof(block);
	spin_lock(&heap.lock);
	if (!heap.ready) {
		block *all = (block *)heap.bytes;
		*all = (block){SPIN_HEAP, NULL};
		heap.first.next = all;
		heap.ready = 1;
	}
	for (block *before = &heap.first; before->next; before = before->next) {
		block *b = before->next;
		if (b->size < wanted)
			continue;
		if (b->size > wanted) {
			b->size -= wanted;
			b = (block *)((unsigned char *)b + b->size);
			b->size = wanted;
		} else {
			before->next = b->next;
		}
		found = b + 1;
		break;
	}
	spin_unlock(&heap.lock);
	return found;
}

/* join makes one block of a and the one behind it, if nothing lies between. */
static void join(block *a)
{
	if (a->next && (unsigned char *)a + a->size == (unsigned char *)a->next) {
		a->size += a->next->size;
		a->next = a->next->next;
	}
}

void free(void *p)
{
	if (!p)
		return;
	block *b = (block *)p - 1;
	spin_lock(&heap.lock);
	block *before = &heap.first;
	while (before->next && before->next < b)
		before = before->next;
	b->next = before->next;
	before->next = b;
	join(b);
	if (before != &heap.first)
		join(before);
	spin_unlock(&heap.lock);
}

void *calloc(size_t count, size_t size)
{
	size_t bytes;
	void *p = __builtin_mul_overflow(count, size, &bytes) ? NULL : malloc(bytes);
	return p ? memset(p, 0, bytes) : NULL;
}

void *realloc(void *old, size_t size)
{
	if (size == 0) {
		free(old);
		return NULL;
	}
	void *p = malloc(size);
	if (p && old) {
		size_t had = ((block *)old - 1)->size - sizeof(block);
		memcpy(p, old, had < size ? had : size);
		free(old);
	}
	return p;
}

static uint32_t seed = 1;

void srand(unsigned s)
{
	seed = s ? s : 1;
}

/* Marsaglia, Xorshift RNGs (2003): period 2^32 - 1. */
int rand(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return (int)(seed & RAND_MAX);
}

int abs(int n)
{
	return n < 0 ? -n : n;
}

_Noreturn void abort(void)
{
	__builtin_trap();
}

_Noreturn void exit(int status)
{
	(void)status;
	__builtin_trap();
}
