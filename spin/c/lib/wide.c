/* Arithmetic of 128 bits, under the names by which clang calls it (compiler-rt's). wasm has that of 64 bits itself. */
#include <stdint.h>

typedef unsigned __int128 u128;
typedef __int128 i128;

/* halves are the two words of a number; shifting an __int128 would call the functions below. */
typedef union {
	u128 whole;
	struct {
		uint64_t low, high;
	};
} halves;

u128 __ashlti3(u128 a, int n);
u128 __lshrti3(u128 a, int n);
i128 __ashrti3(i128 a, int n);
i128 __multi3(i128 a, i128 b);
u128 __udivmodti4(u128 a, u128 b, u128 *rest);
u128 __udivti3(u128 a, u128 b);
u128 __umodti3(u128 a, u128 b);
i128 __divti3(i128 a, i128 b);
i128 __modti3(i128 a, i128 b);

u128 __ashlti3(u128 a, int n)
{
	halves h = {.whole = a}, r;
	if (n >= 64) {
		r.high = h.low << (n - 64);
		r.low = 0;
	} else if (n == 0) {
		return a;
	} else {
		r.high = h.high << n | h.low >> (64 - n);
		r.low = h.low << n;
	}
	return r.whole;
}

u128 __lshrti3(u128 a, int n)
{
	halves h = {.whole = a}, r;
	if (n >= 64) {
		r.low = h.high >> (n - 64);
		r.high = 0;
	} else if (n == 0) {
		return a;
	} else {
		r.low = h.low >> n | h.high << (64 - n);
		r.high = h.high >> n;
	}
	return r.whole;
}

i128 __ashrti3(i128 a, int n)
{
	halves h = {.whole = (u128)a}, r;
	int64_t high = (int64_t)h.high;
	if (n >= 64) {
		r.low = (uint64_t)(high >> (n - 64));
		r.high = (uint64_t)(high >> 63);
	} else if (n == 0) {
		return a;
	} else {
		r.low = h.low >> n | h.high << (64 - n);
		r.high = (uint64_t)(high >> n);
	}
	return (i128)r.whole;
}

/* product of two words, 32 bits at a time. */
static u128 product(uint64_t a, uint64_t b)
{
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t low = a0 * b0, one = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)one;
	halves r;
	r.low = other << 32 | (uint32_t)low;
	r.high = a1 * b1 + (one >> 32) + (other >> 32);
	return r.whole;
}

i128 __multi3(i128 a, i128 b)
{
	halves x = {.whole = (u128)a}, y = {.whole = (u128)b}, r = {.whole = product(x.low, y.low)};
	r.high += x.high * y.low + x.low * y.high;
	return (i128)r.whole;
}

static int zeros(halves h)
{
	return h.high ? __builtin_clzll(h.high) : 64 + (h.low ? __builtin_clzll(h.low) : 64);
}

/* Long division, bit by bit from the first that the quotient can have. */
u128 __udivmodti4(u128 a, u128 b, u128 *rest)
{
	halves x = {.whole = a}, y = {.whole = b}, q = {.whole = 0};
	if (!y.high && !y.low)
		__builtin_trap();
	if (!x.high && !y.high) {
		q.low = x.low / y.low;
		x.low %= y.low;
	} else {
		int shift = zeros(y) - zeros(x);
		for (; shift >= 0; shift--) {
			halves part = {.whole = __ashlti3(b, shift)};
			if (part.whole > x.whole)
				continue;
			x.whole -= part.whole;
			if (shift >= 64)
				q.high |= 1ull << (shift - 64);
			else
				q.low |= 1ull << shift;
		}
	}
	if (rest)
		*rest = x.whole;
	return q.whole;
}

u128 __udivti3(u128 a, u128 b)
{
	return __udivmodti4(a, b, 0);
}

u128 __umodti3(u128 a, u128 b)
{
	u128 rest;
	__udivmodti4(a, b, &rest);
	return rest;
}

static u128 magnitude(i128 a)
{
	return a < 0 ? 0 - (u128)a : (u128)a;
}

i128 __divti3(i128 a, i128 b)
{
	u128 q = __udivmodti4(magnitude(a), magnitude(b), 0);
	return (i128)((a < 0) != (b < 0) ? 0 - q : q);
}

i128 __modti3(i128 a, i128 b)
{
	u128 rest = __umodti3(magnitude(a), magnitude(b));
	return (i128)(a < 0 ? 0 - rest : rest);
}
