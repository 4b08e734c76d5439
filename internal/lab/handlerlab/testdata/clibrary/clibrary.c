/* The C library: numbers in, results out. */
#include <assert.h>
#include <math.h>
#include <spin.h>
#include <spin_sync.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 u128;
typedef __int128 i128;

typedef struct {
	u128 a, b;
	uint32_t shift;
} operands_t;

/* wide writes the results of arithmetic of 128 bits on the operands in the packet. */
SPIN_HANDLER(wide)(const ptl_payload_t *p, void *state)
{
	const operands_t *o = (const operands_t *)(uintptr_t)p->base;
	i128 a = (i128)o->a, b = (i128)o->b;
	u128 r[] = {o->a * o->b, o->a / o->b, o->a % o->b, (u128)(a / b), (u128)(a % b), o->a << o->shift, o->a >> o->shift, (u128)(a >> o->shift)};
	(void)state;
	return PtlHandlerDMAToHostB(r, p->host_offset, sizeof r, PTL_ME_HOST_MEM) < 0 ? PTL_FAIL : PTL_SUCCESS;
}

/* reals writes what functions make of the number in the packet. */
SPIN_HANDLER(reals)(const ptl_payload_t *p, void *state)
{
	double x = *(const double *)(uintptr_t)p->base;
	float f = (float)x;
	double r[] = {sqrt(x), fabs(x), floor(x), ceil(x), trunc(x), sqrtf(f), fabsf(f), floorf(f), ceilf(f), truncf(f)};
	(void)state;
	return PtlHandlerDMAToHostB(r, p->host_offset, sizeof r, PTL_ME_HOST_MEM) < 0 ? PTL_FAIL : PTL_SUCCESS;
}

/* format prints the number in the packet in many ways. */
SPIN_HANDLER(format)(const ptl_payload_t *p, void *state)
{
	long long v;
	char small[5];
	(void)state;
	memcpy(&v, (const void *)(uintptr_t)p->base, sizeof v);
	int n = (int)v;
	printf("%d|%i|%5d|%-5d|%05d|%+d|% d|%u\n", n, n, n % 1000, n % 1000, n % 1000, n, n, n);
	printf("%x|%X|%#x|%o|%08x|%c", n, n, n | 1, n, n, 'a' + (n & 15));
	printf("%lld|%llu|%llx|%20lld|%-20lld|%.7d", v, v, v, v, v, n % 1000);
	printf("%s|%8s|%-8s|%.3s|%hhd|%hd|%%", "text", "right", "left", "cut off", n, n);
	int length = snprintf(small, sizeof small, "%d", 1234567);
	printf("%s %d", small, length);
	puts("a line");
	return PTL_SUCCESS;
}

/* heap allocates and frees blocks in the order that the packet gives: a byte each, bit 7 for free of the block of the low bits. */
SPIN_HANDLER(heap)(const ptl_payload_t *p, void *state)
{
	const uint8_t *orders = (const uint8_t *)(uintptr_t)p->base;
	static uint8_t *blocks[16];
	static uint8_t sizes[16];
	static uint32_t lock;
	(void)state;
	spin_lock(&lock);
	for (uint32_t i = 0; i < p->length; i++) {
		uint32_t k = orders[i] & 15;
		if (blocks[k]) {
			for (int n = 0; n < sizes[k]; n++)
				assert(blocks[k][n] == k);
			free(blocks[k]);
			blocks[k] = NULL;
		}
		if (orders[i] & 0x80)
			continue;
		sizes[k] = orders[i];
		blocks[k] = i & 1 ? malloc(sizes[k]) : realloc(calloc(1, 3), sizes[k]);
		if (sizes[k] && !blocks[k])
			abort();
		memset(blocks[k], (int)k, sizes[k]);
	}
	for (int k = 0; k < 16; k++) {
		free(blocks[k]);
		blocks[k] = NULL;
	}
	uint8_t *all = malloc(16376); /* nothing is lost: the whole heap is one block again */
	free(all);
	spin_unlock(&lock);
	return all ? PTL_SUCCESS : PTL_FAIL;
}

/* bytes checks the functions on memory and text. */
SPIN_HANDLER(bytes)(const ptl_payload_t *p, void *state)
{
	uint8_t *at = (uint8_t *)(uintptr_t)p->base;
	char text[16] = "abc";
	(void)state;
	memmove(at + 1, at, 8);
	if (memcmp(at, "112345678", 9) || memcmp(at, "11234567z", 9) >= 0 || memcmp("b", "a", 1) <= 0)
		return PTL_FAIL;
	if (strlen(text) != 3 || strcmp(text, "abc") || strcmp(text, "abd") >= 0 || strncmp(text, "abd", 2) || abs(-5) != 5)
		return PTL_FAIL;
	srand(7);
	int first = rand();
	srand(7);
	return rand() == first && rand() != first ? PTL_SUCCESS : PTL_FAIL;
}

/* see writes what a handler sees of a packet: its length and its bytes. */
static int see(uint64_t at, uint32_t packet, uint32_t length)
{
	uint64_t n = length;
	return PtlHandlerDMAToHostB(&n, at, sizeof n, PTL_HANDLER_HOST_MEM) < 0 ||
	       PtlHandlerDMAToHostB((const void *)(uintptr_t)packet, at + sizeof n, length, PTL_HANDLER_HOST_MEM) < 0;
}

SPIN_NEEDS("packets=first")
SPIN_HANDLER(first)(const ptl_header_t *h, void *state)
{
	(void)state;
	return see(0, h->packet, h->packet_len) ? PTL_FAIL : PTL_PROCESS_DATA;
}

SPIN_NEEDS("packets=last")
SPIN_HANDLER(last)(const ptl_completion_t *e, void *state)
{
	(void)state;
	return see(1024, e->packet, e->packet_len) ? PTL_FAIL : PTL_SUCCESS;
}

/* wait keeps its packet in the device for a while. */
SPIN_HANDLER(wait)(const ptl_payload_t *p, void *state)
{
	uint64_t word;
	(void)state;
	return PtlHandlerDMAFromHostB(p->host_offset & ~7ull, &word, sizeof word, PTL_HANDLER_HOST_MEM) < 0 ? PTL_FAIL : PTL_SUCCESS;
}

/* refused asks for the atomic that the packet names: operation and distance from an aligned word. */
SPIN_HANDLER(refused)(const ptl_payload_t *p, void *state)
{
	const uint32_t *word = (const uint32_t *)(uintptr_t)p->base;
	spin_atomic32(word[0], (volatile uint32_t *)((uintptr_t)state + word[1]), 1, 0);
	return PTL_SUCCESS;
}

static __attribute__((noinline)) uint32_t down(uint32_t n, const volatile uint32_t *above)
{
	volatile uint32_t here = n + *above;
	return n ? down(n - 1, &here) + here : here;
}

/* recurse goes as deep as the packet says. */
SPIN_HANDLER(recurse)(const ptl_payload_t *p, void *state)
{
	const uint32_t *n = (const uint32_t *)(uintptr_t)p->base;
	(void)state;
	return down(*n, n) ? PTL_SUCCESS : PTL_FAIL;
}
