/* Handlers under the names of the sPIN paper's toolchain: each name once. */
#include "p4spin_state.h"
#include <stdlib.h>

static void note(state_t *s, const ptl_header_t *h)
{
	s->seen[0] = h->type;
	s->seen[1] = h->length;
	s->seen[2] = h->source_id;
	s->seen[3] = h->target_id;
	s->seen[4] = h->match_bits;
	s->seen[5] = h->offset;
	s->seen[6] = h->hdr_data;
	s->seen[7] = (uint32_t)h->user_hdr.arg[0];
}

void choose(void *message, void *state)
{
	ptl_header_t h = *(ptl_header_t *)message;
	state_t *s = state;
	note(s, &h);
	PtlReturn(s->header_code);
}

/* memory uses both host memories, with and without waiting. */
static int memory(ptl_payload_t *p)
{
	uint8_t local[16];
	ptl_dma_h h[2];
	return PtlHandlerDMAFromHostB(0, local, 8, PTL_ME_HOST_MEM) ||
	       PtlHandlerDMAToHostB(local, 8, 8, PTL_HANDLER_HOST_MEM) ||
	       PtlHandlerDMAToHostNB(p->base, 16, 8, PTL_ME_HOST_MEM, &h[0]) ||
	       PtlHandlerDMAFromHostNB(0, local, 8, PTL_HANDLER_HOST_MEM, &h[1]) || PtlHandlerDMAWait(h[0]) || PtlHandlerDMAWait(h[1]) ||
	       PtlHandlerDMAToHostB(local, 24, 8, PTL_ME_HOST_MEM) || PtlHandlerDMAToHostB(NULL, 32, 8, PTL_ME_HOST_MEM) ||
	       PtlHandlerDMAFromHostB(0, NULL, 8, PTL_ME_HOST_MEM) ||
	       PtlHandlerDMAFromHostB(0, local, 8, 0) == 0; /* no memory of theirs: spin.h's PTL_ME_HOST_MEM */
}

/* reals adds to numbers of floating point, whatever the C type of what is added. */
static int reals(void)
{
	double d[3];
	float f[2];
	return PtlHandlerDMAFetchAddB(80, 2.0, &d[0], PTL_DOUBLE, PTL_ME_HOST_MEM) || PtlHandlerDMAFetchAddB(80, 1.5f, &d[1], PTL_DOUBLE, PTL_ME_HOST_MEM) ||
	       PtlHandlerDMAFetchAddB(80, -3, &d[2], PTL_DOUBLE, PTL_ME_HOST_MEM) || d[0] != 0 || d[1] != 2 || d[2] != 3.5 ||
	       PtlHandlerDMAFetchAddB(88, 0.25, &f[0], PTL_FLOAT, PTL_ME_HOST_MEM) || PtlHandlerDMAFetchAddB(88, 1, &f[1], PTL_FLOAT, PTL_ME_HOST_MEM) ||
	       f[0] != 0 || f[1] != 0.25f;
}

static int atomics(state_t *s)
{
	ptl_dma_h h;
	uint64_t word = 5, other = 9;
	ptl_size_t before[2];
	int bad = PtlHandlerDMACASB(40, &word, 7, PTL_ME_HOST_MEM) != 0 || word != 0; /* it is 0 */
	bad = bad || PtlHandlerDMACASB(40, &word, 7, PTL_ME_HOST_MEM) != 1;
	bad = bad || PtlHandlerDMACASNB(48, &other, 1, PTL_ME_HOST_MEM, &h) || PtlHandlerDMAWait(h) < 0 || other != 0;
	bad = bad || PtlHandlerDMAFetchAddB(60, 0xffffffff, &before[0], PTL_INT, PTL_ME_HOST_MEM);
	bad = bad || PtlHandlerDMAFetchAddNB(60, 3, &before[1], PTL_INT, PTL_ME_HOST_MEM, &h) || PtlHandlerDMAWait(h);
	bad = bad || before[0] != 0 || before[1] != 0xffffffff;
	bad = bad || PtlHandlerDMAFetchAddB(64, 1ull << 40, &other, PTL_UINT64_T, PTL_ME_HOST_MEM) || other != 0;
	bad = bad || PtlHandlerDMAFetchAddNB(64, 1, &other, PTL_INT64_T, PTL_ME_HOST_MEM, &h);
	while (!bad && PtlHandlerDMATest(h) == 0)
		PtlHandlerYield();
	bad = bad || other != 1ull << 40 || PtlHandlerDMAFetchAddB(62, 1, &before[0], PTL_INT, PTL_ME_HOST_MEM) == 0; /* not aligned */
	bad = bad || PtlHandlerCAS(&s->word, 1, 2) != 0 || PtlHandlerCAS(&s->word, 0, 2) != 1;
	return bad || PtlHandlerFAdd(&s->word, &s->before, 40) || reals();
}

static int messages(ptl_payload_t *p)
{
	return PtlHandlerPutFromDevice(p->base, p->length, PTL_LOCAL_ME_CT, 0, 1, 0x11, 64, NULL, 1) ||
	       PtlHandlerPutFromDevice(NULL, 4, PTL_LOCAL_ME_CT, 0, 1, 0x12, 0, NULL, 2) ||
	       PtlHandlerPutFromHost(0, 8, PTL_LOCAL_ME_CT, 0, 1, 0x13, 0, NULL, 3) ||
	       PtlHandlerGetToHost(56, 4, PTL_LOCAL_ME_CT, 0, 1, 0x14, 5, NULL, 0);
}

/* counters are read and changed as a whole, and by their successes. */
static int counters(state_t *s)
{
	ptl_ct_h ct = (ptl_ct_h)s->before;
	ptl_ct_event_t two = {2, 0}, failure = {0, 1}, now;
	uint32_t n = 0;
	uint64_t wide = 0;
	int bad = PtlHandlerCTInc(ct, 3) || PtlHandlerCTInc(ct, two) || PtlHandlerCTGet(ct, &n) || n != 5;
	bad = bad || PtlHandlerCTSet(ct, 7) || PtlHandlerCTInc(ct, failure) || PtlHandlerCTGet(ct, &now) || now.success != 7 || now.failure != 1;
	bad = bad || PtlHandlerCTSet(ct, 8) || PtlHandlerCTGet(ct, &now) || now.success != 8 || now.failure != 1;
	bad = bad || PtlHandlerCTSet(ct, 1ull << 32) || PtlHandlerCTGet(ct, &n) == 0 || n != 5;
	return bad || PtlHandlerCTSet(ct, two) || PtlHandlerCTGet(ct, &wide) || wide != 2;
}

void act(void *message, void *state)
{
	ptl_payload_t p = *(ptl_payload_t *)message;
	state_t *s = state;
	if (s->act == 9) { /* the heap's lock lets others run */
		free(malloc(16));
		PtlReturn(p.base[0] % 2 ? DROP : SUCCESS);
		return;
	}
	int bad = s->act == 1 ? memory(&p) : s->act == 2 ? atomics(s) : s->act == 3 ? messages(&p) : s->act == 4 ? counters(s) : s->act == 5 ? exchanges(&p) : 0;
	bad = bad || (s->act == 7 && PtlHandlerDMAFromHostB(0, NULL, PACKET_SIZE + 1, PTL_ME_HOST_MEM));
	bad = bad || (s->act == 10 && PtlHandlerDMAToHostB(NULL, 0, p.length + 1, PTL_ME_HOST_MEM));
	PtlReturn(bad ? 99 : s->payload_code);
}

void finish(void *message, void *state)
{
	state_t *s = state;
	ptl_payload_t p = *(ptl_payload_t *)message;
	int bad = s->act == 6 && (p.length || PtlHandlerPutFromDevice(NULL, 4, PTL_LOCAL_ME_CT, 0, 1, 0x18, 0, NULL, 7));
	bad = bad || (s->act == 8 && PtlHandlerDMAToHostB(NULL, 0, PACKET_SIZE + 1, PTL_ME_HOST_MEM));
	PtlReturn(bad ? 99 : s->completion_code);
}

int main(void)
{
	handler_t handlers[] = {choose, act, finish};
	init();
	set_handlers(handlers);
	return libmain();
}
