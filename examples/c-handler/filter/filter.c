/* A filter: packets whose first four bytes are the wanted number are deposited in host memory and counted; all others are
 * counted and dropped. */
//spin:library filter_c 1.0
//spin:needs spaces=entry
#include <spin.h>

/* The state lies in HPU memory. The host sets wanted, the handlers count. */
typedef struct {
	uint64_t passed SPIN_FIELD("unit=packets"); /* deposited */
	uint64_t dropped SPIN_FIELD("unit=packets");
	uint32_t wanted; /* first four bytes of packets that pass */
} state_t;

/* payload looks at the first four bytes of a packet. */
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
