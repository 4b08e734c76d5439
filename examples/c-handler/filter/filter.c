/* The filter of examples/first-handler, in C: packets whose first four bytes are the wanted number are deposited in host
 * memory and counted; all others are counted and dropped. */
#include <spin.h>

/* The state lies in HPU memory. The host sets wanted, the handlers count. */
typedef struct {
	uint64_t passed, dropped; /* packets */
	uint32_t wanted;
	uint32_t unused;
} state_t;

SPIN_HANDLER(payload)(const ptl_payload_t *p, state_t *s)
{
	const uint32_t *data = (const uint32_t *)(uintptr_t)p->base;

	if (p->length < sizeof(*data) || *data != s->wanted) {
		PtlHandlerFAdd(&s->dropped, 1);
		return PTL_DROP;
	}
	PtlHandlerFAdd(&s->passed, 1);
	if (PtlHandlerDMAToHostB(data, p->host_offset, p->length, PTL_ME_HOST_MEM) < 0)
		return PTL_FAIL;
	return PTL_SUCCESS;
}
