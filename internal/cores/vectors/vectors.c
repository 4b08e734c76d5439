/* The inner loop of a reduction of floats, without and with vectors of 128 bits: a round adds four floats to four others. The
 * attribute target gives one function the instructions, so that the other has none of them.
 */
#include <stdint.h>

#define LOOP __attribute__((noinline))
#define EACH _Pragma("clang loop unroll(disable) vectorize(disable)") for (int32_t i = 0; i < n; i++)

typedef float lanes __attribute__((vector_size(16)));

struct args { void *data; uint32_t length; }; /* of the payload handler (docs/abi.md); length: rounds */

LOOP static void add(float *restrict d, const float *restrict s, int32_t n) {
	EACH {
		d[0] += s[0];
		d[1] += s[1];
		d[2] += s[2];
		d[3] += s[3];
		d += 4, s += 4;
	}
}

LOOP __attribute__((target("simd128"))) static void add_lanes(lanes *restrict d, const lanes *restrict s, int32_t n) {
	EACH d[i] += s[i];
}

#define HANDLER(name) __attribute__((export_name(#name))) int32_t on_##name(const struct args *a, void *into)

HANDLER(floats) { add(into, a->data, (int32_t)a->length); return 0; }
HANDLER(lanes) { add_lanes(into, a->data, (int32_t)a->length); return 0; }
