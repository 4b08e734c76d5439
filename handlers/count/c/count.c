/* Counts messages, packets and bytes in HPU memory; nothing is deposited. The same as package count, in C. */
//spin:library count_c 1.0
#include <spin.h>

/* The HPU memory of an entry that counts. It starts as zero. */
typedef struct {
	uint64_t messages SPIN_FIELD("unit=messages"); /* ended */
	uint64_t packets SPIN_FIELD("unit=packets");   /* with payload */
	uint64_t bytes SPIN_FIELD("unit=bytes");       /* of payload */
	uint64_t dropped SPIN_FIELD("unit=bytes");     /* that flow control dropped */
} state_t;

/* payload counts a packet and its bytes. */
SPIN_HANDLER(payload)(const ptl_payload_t *p, state_t *s)
{
	PtlHandlerFAdd(&s->packets, 1);
	PtlHandlerFAdd(&s->bytes, p->length);
	return PTL_SUCCESS;
}

/* completion counts a message, and what flow control has dropped of it. */
SPIN_HANDLER(completion)(const ptl_completion_t *c, state_t *s)
{
	PtlHandlerFAdd(&s->messages, 1);
	if (c->dropped_bytes > 0)
		PtlHandlerFAdd(&s->dropped, c->dropped_bytes);
	return PTL_SUCCESS;
}
