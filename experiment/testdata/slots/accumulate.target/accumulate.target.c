/* A second module for slot accumulate.target, from its contract. Each context of an HPU has a buffer of its own. */
//spin:library accumulate_target 1.0
//spin:needs memory=hpus*contexts*mtu spaces=entry entry_options=op_put
#include <spin.h>

typedef struct {
	uint32_t mtu SPIN_FIELD("unit=bytes default=mtu"); /* bytes of a buffer; the buffers lie behind the state */
	uint32_t padding[3];
} state_t;

typedef struct {
	double re, im;
} number_t;

SPIN_HANDLER(payload)(const ptl_payload_t *r, state_t *s)
{
	const number_t *factor = (const number_t *)(uintptr_t)r->base;
	number_t *mine = (number_t *)((char *)(s + 1) + (uint32_t)PTL_MY_HPU * s->mtu);
	if (PtlHandlerDMAFromHostB(r->host_offset, mine, r->length, PTL_ME_HOST_MEM) < 0)
		return PTL_FAIL;
	for (uint32_t i = 0; i < r->length / sizeof(number_t); i++) {
		number_t a = mine[i], b = factor[i];
		mine[i].re = a.re * b.re - a.im * b.im;
		mine[i].im = a.re * b.im + a.im * b.re;
	}
	if (PtlHandlerDMAToHostB(mine, r->host_offset, r->length, PTL_ME_HOST_MEM) < 0)
		return PTL_FAIL;
	return PTL_SUCCESS;
}
