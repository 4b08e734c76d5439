/* Handlers that take every action and end in every way, for the tests of package handlerlab. */
#include <spin.h>

typedef struct {
	uint64_t word;
	uint64_t found;
	uint32_t counter; /* a counter of the host */
	uint32_t rounds;
	uint64_t pair[2];
	uint8_t buffer[64];
} state_t;

static ptl_process_t peer(uint32_t nid)
{
	ptl_process_t p = {nid, 0};
	return p;
}

/* Non-blocking DMA: one operation is waited for, one tested, one left behind; then blocking atomics. */
SPIN_HANDLER(dma)(const ptl_payload_t *p, state_t *s)
{
	ptl_dma_h write, read, left;
	const void *packet = (const void *)(uintptr_t)p->base;

	PtlHandlerDMAToHostNB(packet, 8, p->length, PTL_ME_HOST_MEM, &write);
	PtlHandlerDMAFromHostNB(0, s->buffer, 16, PTL_HANDLER_HOST_MEM, &read);
	if (PtlHandlerDMATest(read) != 0)
		return PTL_FAIL;
	PtlHandlerDMAToHostNB(packet, 32, p->length, PTL_ME_HOST_MEM, &left);
	if (PtlHandlerDMAWait(read) < 0)
		return PTL_FAIL;
	s->found = 0;
	if (PtlHandlerDMACASB(64, &s->found, 7, PTL_ME_HOST_MEM) != 1)
		return PTL_FAIL;
	return PtlHandlerDMAFetchAddB(64, 5, &s->found, PTL_UINT64_T, PTL_ME_HOST_MEM) < 0 ? PTL_FAIL : PTL_SUCCESS;
}

/* Retries a write that meets a page that is not present. */
SPIN_HANDLER(retry)(const ptl_payload_t *p, state_t *s)
{
	while (PtlHandlerDMAToHostB((const void *)(uintptr_t)p->base, 0, p->length, PTL_ME_HOST_MEM) == SPIN_FAULT)
		s->rounds++;
	return PTL_SUCCESS;
}

/* Asks for more than it may. */
SPIN_HANDLER(outside)(const ptl_payload_t *p, state_t *s)
{
	(void)s;
	return PtlHandlerDMAToHostB((const void *)(uintptr_t)p->base, 1u << 30, p->length, PTL_ME_HOST_MEM) == SPIN_DENIED &&
			       PtlHandlerPutFromDevice(0, 0, PTL_NO_ACK_REQ, peer(99), 0, 0, 0, 0, 0) == SPIN_INVALID
		       ? PTL_DROP
		       : PTL_FAIL;
}

SPIN_HANDLER(local)(const ptl_payload_t *p, state_t *s)
{
	(void)p;
	PtlHandlerCAS(&s->word, 1, 2);
	PtlHandlerCAS(&s->word, 0, 2);
	PtlHandlerFAdd(&s->word, 40);
	PtlHandlerYield();
	spin_log("hello", 5);
	ptl_ct_event_t by = {3, 0}, value = {10, 0};
	PtlHandlerCTInc(s->counter, by);
	PtlHandlerCTGet(s->counter, (ptl_ct_event_t *)s->pair);
	PtlHandlerCTSet(s->counter, value);
	spin_ack(0);
	return PTL_SUCCESS;
}

SPIN_HANDLER(messages)(const ptl_payload_t *p, state_t *s)
{
	const void *packet = (const void *)(uintptr_t)p->base;
	int bad = 0;

	bad |= PtlHandlerPutFromDevice(packet, p->length, PTL_NO_ACK_REQ, peer(p->source_nid), 3, 0xab, 100, 0, 5);
	bad |= PtlHandlerPutFromHost(0, 32, PTL_NO_ACK_REQ, peer(2), 4, 0, 0, 0, 0);
	bad |= PtlHandlerGetFromDevice(s->buffer, 4, peer(2), 0, 0, 16, 0);
	bad |= PtlHandlerGetFromHost(40, 8, peer(2), 0, 0, 64, 0);
	bad |= PtlHandlerAtomicFromDevice(packet, 8, PTL_NO_ACK_REQ, peer(2), 0, 0, 0, 0, 0, PTL_SUM, PTL_UINT64_T);
	return bad ? PTL_FAIL : PTL_SUCCESS;
}

/* Sends itself a message, which sets a timer, whose message ends it. */
SPIN_HANDLER(self)(const ptl_payload_t *p, state_t *s)
{
	ptl_op_t op = spin_op(p->length, PTL_NO_ACK_REQ, peer(0), 0, 0, 0, 0, 0);

	op.local = (uint32_t)(uintptr_t)s->buffer;
	switch (s->rounds++) {
	case 0:
		return spin_to_self(&op) < 0 ? PTL_FAIL : PTL_SUCCESS;
	case 1:
		return spin_timer(1000, &op) < 0 ? PTL_FAIL : PTL_SUCCESS;
	}
	return PTL_SUCCESS;
}

/* Sets timers for ever. */
SPIN_HANDLER(again)(const ptl_payload_t *p, state_t *s)
{
	ptl_op_t op = spin_op(p->length, PTL_NO_ACK_REQ, peer(0), 0, 0, 0, 0, 0);

	op.local = (uint32_t)(uintptr_t)s->buffer;
	return spin_timer(1000, &op) < 0 ? PTL_FAIL : PTL_SUCCESS;
}

SPIN_HANDLER(trap)(const ptl_payload_t *p, state_t *s)
{
	(void)p;
	s->word = 1;
	return *(volatile int *)0x7fffffff;
}

SPIN_HANDLER(forever)(const ptl_payload_t *p, state_t *s)
{
	(void)p;
	for (;;)
		*(volatile uint32_t *)&s->rounds += 1;
}

SPIN_HANDLER(nonsense)(const ptl_payload_t *p, state_t *s)
{
	(void)p, (void)s;
	return 77;
}

SPIN_HANDLER(drop)(const ptl_header_t *h, state_t *s)
{
	s->word = h->user_hdr_len;
	return PTL_DROP;
}
