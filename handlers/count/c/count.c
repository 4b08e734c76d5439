/* The handlers of package count, in C. */
#include <spin.h>

/* As count.State. */
typedef struct {
	uint64_t messages, packets, bytes, dropped;
} state_t;

SPIN_HANDLER(payload)(const ptl_payload_t *p, state_t *s)
{
	PtlHandlerFAdd(&s->packets, 1);
	PtlHandlerFAdd(&s->bytes, p->length);
	return PTL_SUCCESS;
}

SPIN_HANDLER(completion)(const ptl_completion_t *c, state_t *s)
{
	PtlHandlerFAdd(&s->messages, 1);
	if (c->dropped_bytes > 0)
		PtlHandlerFAdd(&s->dropped, c->dropped_bytes);
	return PTL_SUCCESS;
}
