/* The loops on which cost tables are compared with real cores. Each works on the n elements at the beginning of a packet and on
 * memory of the module; spinsim counts the cycles of n and of 2n elements, scripts/core-references.sh compiles the same loops
 * for the cores themselves and asks what a round takes there.
 *
 * Freestanding: without spin.h, so that any compiler takes it. Each loop is a function of its own, not inlined, one element a
 * round.
 */
#include <stdint.h>

#define LOOP __attribute__((noinline))
#define EACH _Pragma("clang loop unroll(disable) vectorize(disable)") for (int32_t i = 0; i < n; i++)

struct complex { double re, im; };
struct complexf { float re, im; };
struct item { struct item *next; uint32_t value; };

LOOP void copy(uint32_t *restrict d, const uint32_t *restrict s, int32_t n) {
	EACH *(volatile uint32_t *)&d[i] = s[i]; /* volatile: else it becomes a call of memcpy */
}

LOOP uint32_t sum8(const uint8_t *s, int32_t n) {
	uint32_t sum = 0;
	EACH sum += s[i];
	return sum;
}

LOOP uint64_t sum64(const uint64_t *s, int32_t n) {
	uint64_t sum = 0;
	EACH sum += s[i];
	return sum;
}

LOOP void xor32(uint32_t *restrict d, const uint32_t *restrict s, int32_t n) {
	EACH d[i] ^= s[i];
}

/* The loop of the handler accumulate. */
LOOP void cmul(struct complex *restrict d, const struct complex *restrict s, int32_t n) {
	EACH {
		double a = d[i].re, b = d[i].im, c = s[i].re, e = s[i].im;
		d[i].re = a * c - b * e;
		d[i].im = a * e + b * c;
	}
}

/* The same in single precision, as published. */
LOOP void cmulf(struct complexf *restrict d, const struct complexf *restrict s, int32_t n) {
	EACH {
		float a = d[i].re, b = d[i].im, c = s[i].re, e = s[i].im;
		d[i].re = a * c - b * e;
		d[i].im = a * e + b * c;
	}
}

/* MurmurHash3 of 32-bit words. */
LOOP uint32_t hash(const uint32_t *s, int32_t n) {
	uint32_t h = 0;
	EACH {
		uint32_t k = s[i] * 0xcc9e2d51u;
		k = (k << 15 | k >> 17) * 0x1b873593u;
		h ^= k;
		h = (h << 13 | h >> 19) * 5 + 0xe6546b64u;
	}
	return h;
}

/* CRC-32 of bytes with a table. */
LOOP uint32_t crc(const uint8_t *s, const uint32_t *table, int32_t n) {
	uint32_t c = ~0u;
	EACH c = table[(c ^ s[i]) & 0xff] ^ c >> 8;
	return c;
}

LOOP uint32_t chase(const struct item *p, int32_t n) {
	uint32_t sum = 0;
	EACH {
		sum += p->value;
		p = p->next;
	}
	return sum;
}

LOOP void histogram(uint32_t *bins, const uint8_t *s, int32_t n) {
	EACH bins[s[i]]++;
}

/* Keeps every word that is larger than the limit: half of them, in no order. */
LOOP int32_t filter(uint32_t *restrict d, const uint32_t *restrict s, uint32_t limit, int32_t n) {
	uint32_t *out = d;
	EACH {
		uint32_t v = s[i];
		if (v > limit)
			*(volatile uint32_t *)out++ = v; /* volatile: a branch, not a store to a chosen address */
	}
	return (int32_t)(out - d);
}

/* Lengths of vectors and their inverse. */
LOOP void normf(struct complexf *d, int32_t n) {
	EACH {
		float length = __builtin_sqrtf(d[i].re * d[i].re + d[i].im * d[i].im);
		d[i].re = length;
		d[i].im = 1.0f / length;
	}
}

/* The loops below have no reference; experiment pspin measures them. */
LOOP uint32_t multiply(const uint32_t *s, uint32_t k, int32_t n) {
	uint32_t sum = 0;
	EACH sum += s[i] * k;
	return sum;
}

LOOP uint32_t divide(const uint32_t *s, uint32_t k, int32_t n) {
	uint32_t sum = 0;
	EACH sum += s[i] / k;
	return sum;
}

LOOP uint32_t sum32(const uint32_t *s, int32_t n) {
	uint32_t sum = 0;
	EACH sum += s[i];
	return sum;
}

LOOP static uint32_t leaf(uint32_t a, uint32_t b) { return a ^ b; }

LOOP uint32_t calls(const uint32_t *s, int32_t n) {
	uint32_t sum = 0;
	EACH sum = leaf(sum, s[i]);
	return sum;
}

#ifdef __wasm__
/* atomic32 of docs/abi.md: operation 2 adds. */
__attribute__((import_module("spin"), import_name("atomic32"))) uint32_t atomic32(uint32_t operation, volatile void *at, uint32_t operand, uint32_t compare);

LOOP void atomics(uint32_t *d, const uint32_t *s, int32_t n) {
	EACH atomic32(2, d, s[i], 0);
}

/* opaque hides a constant: division by a known one is a multiplication. */
static uint32_t opaque(uint32_t k) { __asm__("" : "+r"(k)); return k; }

#define HANDLER(name) __attribute__((export_name(#name))) int32_t on_##name(const struct args *a, void *state)

struct args { void *data; uint32_t length; }; /* of the payload handler (docs/abi.md); length: rounds */

static union { uint32_t words[2048]; struct complex z[1024]; struct item items[2048]; } memory;

HANDLER(copy) { (void)state; copy(memory.words, a->data, (int32_t)a->length); return 0; }
HANDLER(sum8) { (void)state; memory.words[0] = sum8(a->data, (int32_t)a->length); return 0; }
HANDLER(sum64) { (void)state; memory.words[0] = (uint32_t)sum64(a->data, (int32_t)a->length); return 0; }
HANDLER(xor32) { (void)state; xor32(memory.words, a->data, (int32_t)a->length); return 0; }
HANDLER(cmul) { (void)state; cmul(memory.z, a->data, (int32_t)a->length); return 0; }
HANDLER(cmulf) { (void)state; cmulf((struct complexf *)memory.z, a->data, (int32_t)a->length); return 0; }
HANDLER(hash) { (void)state; memory.words[0] = hash(a->data, (int32_t)a->length); return 0; }
HANDLER(crc) { (void)state; memory.words[0] = crc(a->data, memory.words, (int32_t)a->length); return 0; }
HANDLER(histogram) { (void)state; histogram(memory.words, a->data, (int32_t)a->length); return 0; }
HANDLER(filter) { (void)state; return filter(memory.words, a->data, 1u << 31, (int32_t)a->length) < 0; }
HANDLER(normf) { (void)state; normf(a->data, (int32_t)a->length); return 0; }

HANDLER(multiply) { (void)state; memory.words[0] = multiply(a->data, opaque(0x9e3779b1), (int32_t)a->length); return 0; }
HANDLER(divide_small) { (void)state; memory.words[0] = divide(a->data, opaque(100), (int32_t)a->length); return 0; }
HANDLER(divide_large) { (void)state; memory.words[0] = divide(a->data, opaque(0x80000001), (int32_t)a->length); return 0; }
HANDLER(sum_l1) { (void)state; memory.words[0] = sum32(a->data, (int32_t)a->length); return 0; }
HANDLER(sum_l2) { memory.words[0] = sum32(memory.words, (int32_t)a->length); (void)state; return 0; }
HANDLER(copy_l2) { (void)state; copy(memory.words, a->data, (int32_t)a->length); return 0; }
HANDLER(histogram_l2) { (void)state; histogram(memory.words, a->data, (int32_t)a->length); return 0; }
HANDLER(leaf) { (void)state; memory.words[0] = calls(a->data, (int32_t)a->length); return 0; }
HANDLER(atomic) { (void)state; atomics(memory.words, a->data, (int32_t)a->length); return 0; }

HANDLER(chase) {
	(void)state;
	memory.items[0].next = memory.items;
	memory.words[0] = chase(memory.items, (int32_t)a->length);
	return 0;
}
#endif
