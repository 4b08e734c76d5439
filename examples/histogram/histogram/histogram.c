/* Counts the bytes of messages by value, and lets the host say how while messages come.
 *
 * Each cluster of HPUs counts into a scratchpad of its own, so that only its cores compete for a counter. The completion handler adds the clusters up
 * and writes the sums to host memory without waiting; the count of messages follows in one write of 8 bytes.
 */
//spin:library histogram 1.0
//spin:needs scratchpad=1024 message_memory=16 spaces=entry

#include <spin.h>
#include <spin_sync.h>

enum { BUCKETS = 256 };

struct state {
	uint32_t ready;    /* the host sets it behind the other fields: messages wait until it does */
	uint32_t shift;    /* of a byte, to the right, before it is counted: the host may change it at any time */
	uint64_t messages SPIN_FIELD("unit=messages"); /* counted so far; the host may set it to 0 */
	uint32_t sums[BUCKETS]; /* of all clusters, as they were written to host memory last */
	uint32_t lock;          /* of sums, and of the order in which they are written to host memory */
};

struct message {
	uint32_t shift; /* one shift for all of a message */
};

/* header waits for the configuration, and keeps what its message needs of it. */
SPIN_HANDLER(header)(const ptl_header_t *h, struct state *s)
{
	(void)h;
	spin_wait32(&s->ready, 0);
	struct message *m = spin_place(spin_message_memory());
	m->shift = s->shift;
	return PTL_PROCESS_DATA;
}

/* payload counts the bytes of a packet in the scratchpad of its cluster. */
SPIN_HANDLER(payload)(const ptl_payload_t *p, struct state *s)
{
	(void)s;
	const struct message *m = spin_place(spin_message_memory());
	uint32_t *counts = spin_place(spin_scratchpad(spin_my_cluster()));
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)p->base;
	for (uint32_t i = 0; i < p->length; i++)
		spin_add32(&counts[bytes[i] >> m->shift], 1);
	return PTL_SUCCESS;
}

/* completion writes the sums of all clusters to host memory, and behind them how many messages they contain. */
SPIN_HANDLER(completion)(const ptl_completion_t *c, struct state *s)
{
	(void)c;
	spin_lock(&s->lock); /* other messages end at the same time */
	for (int32_t k = 0, clusters = spin_num_clusters(); k < clusters; k++) {
		const uint32_t *counts = spin_place(spin_scratchpad(k));
		for (uint32_t b = 0; b < BUCKETS; b++)
			s->sums[b] = k == 0 ? counts[b] : s->sums[b] + counts[b];
	}
	uint64_t messages = (uint64_t)spin_fadd(&s->messages, 1) + 1;
	int written = PtlHandlerDMAToHostPosted(s->sums, 8, sizeof s->sums, PTL_ME_HOST_MEM);
	if (written == PTL_OK)
		written = PtlHandlerHostWrite(messages, 0, PTL_ME_HOST_MEM);
	spin_unlock(&s->lock);
	return written == PTL_OK ? PTL_SUCCESS : PTL_FAIL;
}
