/* A second module for slot mailbox.engine, from its contract. */
//spin:library mailbox_engine 1.0
//spin:needs memory=min(64*ranks,1024)*48 entry_options=op_put
//spin:needs handler=packetizer user_header=64
//spin:needs handler=mailbox spaces=handler host_memory=256*80
#include "mailbox.engine.h"
#include <spin_sync.h>
#include <string.h>

/* Locks: one for each channel, one for the mailbox. The state has no other use for these words. */
static void lock(uint32_t *word)
{
	while (spin_cswap32(word, 0, 1) != 0)
		PtlHandlerYield();
}

static void unlock(uint32_t *word) { *word = 0; }

/* Match bits: see Bits in the header. */
static uint64_t bits(const state_t *s, uint32_t kind, uint32_t channel, uint32_t length, uint32_t code)
{
	return kind | (uint64_t)s->pdid << MAILBOX_PDID_SHIFT | channel << 20 | (uint64_t)(s->pt & 0xff) << 24 | (uint64_t)length << 32 | (uint64_t)code << 40;
}

static void changed(const state_t *s)
{
	if (s->changed_ct)
		spin_ct_inc(s->changed_ct, 1, 0);
}

/* launch sends the message of a channel, and starts its time-out. The number of the attempt tells time-outs apart. */
static int launch(state_t *s, uint32_t channel)
{
	mailbox_channel_t *c = (mailbox_channel_t *)&s->channels[channel];
	ptl_process_t to = {.nid = c->nid, .pid = c->pid}, self = {.nid = s->nid, .pid = s->pid};
	uint32_t words = c->length > MAILBOX_WORD ? (c->length + MAILBOX_WORD - 1) / MAILBOX_WORD * MAILBOX_WORD : MAILBOX_WORD;
	ptl_op_t cell = spin_op(words, PTL_NO_ACK_REQ, to, c->pt, bits(s, MAILBOX_KIND_CELL, channel, c->length, 0), 0, 0, c->sequence);
	cell.local = (uint32_t)(uintptr_t)c->payload;
	cell.options = SPIN_DATAGRAMS; /* a damaged one comes, without its bytes */
	if (spin_put_from_device(&cell) < 0) {
		c->status = MAILBOX_NACKED;
		c->code = MAILBOX_NACK_ILLEGAL;
		s->sent.nacked++;
		changed(s);
		return PTL_OK;
	}
	uint32_t doubled = c->attempt < s->back_off ? 0 : c->attempt - s->back_off + 1;
	ptl_op_t late = spin_op(0, PTL_NO_ACK_REQ, self, s->pt, bits(s, MAILBOX_KIND_TIMEOUT, channel, 0, 0), 0, 0, (uint64_t)c->attempt << 32 | c->sequence);
	c->timer = spin_timer(s->timeout << (doubled > 6 ? 6 : doubled), &late);
	return c->timer;
}

static int again(state_t *s, uint32_t channel)
{
	mailbox_channel_t *c = (mailbox_channel_t *)&s->channels[channel];
	c->left--;
	c->attempt++;
	s->sent.retransmitted++;
	return launch(s, channel);
}

/* store is what the process does to a channel. */
static int store(const ptl_header_t *r, state_t *s, uint32_t channel, uint32_t kind)
{
	mailbox_channel_t *c = (mailbox_channel_t *)&s->channels[channel];
	c->stores++;
	if (c->status == MAILBOX_ONGOING) {
		s->sent.busy++;
		return PTL_OK;
	}
	if (kind == MAILBOX_KIND_LAUNCH) {
		c->length = r->user_hdr_len;
		memcpy(c->payload, (const void *)(uintptr_t)r->user_hdr, c->length);
		c->nid = (uint32_t)r->hdr_data;
		c->pid = r->hdr_data >> 32 & 0xffff;
		c->pt = r->hdr_data >> 48 & 0xff;
		c->sequence++;
		s->sent.messages++;
	} else {
		c->sequence += c->status == MAILBOX_NACKED; /* a refused message is a new one */
		s->sent.relaunched++;
	}
	c->status = MAILBOX_ONGOING;
	c->code = c->attempt = 0;
	c->left = s->retries;
	return launch(s, channel);
}

/* answer is an ACK, a NACK or a time-out of the present message. */
static int answer(const ptl_header_t *r, state_t *s, uint32_t channel, uint32_t kind)
{
	mailbox_channel_t *c = (mailbox_channel_t *)&s->channels[channel];
	uint32_t code = r->match_bits >> 40 & 0xff;
	if (c->status != MAILBOX_ONGOING || c->sequence != (uint32_t)r->hdr_data || (kind == MAILBOX_KIND_TIMEOUT && c->attempt != r->hdr_data >> 32)) {
		s->sent.outdated++;
		return PTL_OK;
	}
	if (kind == MAILBOX_KIND_TIMEOUT)
		s->sent.timeouts++;
	else
		spin_timer_cancel(c->timer);
	if (kind == MAILBOX_KIND_TIMEOUT || (kind == MAILBOX_KIND_NACK && code == MAILBOX_NACK_DAMAGED)) {
		if (c->left)
			return again(s, channel);
		s->sent.timed_out++;
		c->status = MAILBOX_TIMED_OUT;
	} else if (kind == MAILBOX_KIND_ACK) {
		s->sent.acked++;
		c->status = MAILBOX_ACKED;
	} else {
		s->sent.nacked++;
		c->code = code;
		c->status = MAILBOX_NACKED;
	}
	changed(s);
	return PTL_OK;
}

SPIN_HANDLER(packetizer)(const ptl_header_t *r, state_t *s)
{
	uint32_t kind = r->match_bits & 0xf, channel = r->match_bits >> 20 & 0xf;
	int own = r->source_nid == s->nid && r->source_pid == s->pid, done = PTL_OK;
	int stored = kind == MAILBOX_KIND_LAUNCH || kind == MAILBOX_KIND_AGAIN;
	if (channel >= MAILBOX_CHANNELS || ((stored || kind == MAILBOX_KIND_TIMEOUT) && !own)) {
		s->sent.strange++;
		return PTL_DROP;
	}
	if (!s->ready) {
		s->ready = 1;
		for (uint32_t i = 0; i < MAILBOX_CHANNELS; i++)
			s->channels[i].sequence = s->sequence;
	}
	mailbox_channel_t *c = (mailbox_channel_t *)&s->channels[channel];
	lock(&c->reserved);
	if (stored)
		done = store(r, s, channel, kind);
	else if (kind == MAILBOX_KIND_ACK || kind == MAILBOX_KIND_NACK || kind == MAILBOX_KIND_TIMEOUT)
		done = answer(r, s, channel, kind);
	else
		s->sent.strange++;
	unlock(&c->reserved);
	return done < 0 ? PTL_FAIL : PTL_DROP;
}

/* decide says what becomes of a cell: a kind of answer and a code, or no answer at all. An accepted cell has the next turn. */
static uint32_t decide(const ptl_payload_t *p, state_t *s, uint32_t length, mailbox_peer_t **of, uint32_t *code, uint32_t *turn)
{
	uint32_t channel = p->match_bits >> 20 & 0xf, pt = p->match_bits >> 24 & 0xff, sequence = (uint32_t)p->hdr_data;
	mailbox_peer_t *peers = (mailbox_peer_t *)(s + 1), *peer = 0;
	for (uint32_t i = 0; i < s->peers && !peer; i++)
		if (!(peers[i].used >> 31) || (peers[i].nid == p->source_nid && peers[i].pid == p->source_pid && peers[i].pt == pt))
			peer = &peers[i];
	if (!peer) {
		s->received.no_peer++;
		*code = MAILBOX_NACK_NO_PEER;
		return MAILBOX_KIND_NACK;
	}
	*of = peer;
	if (!(peer->used >> 31)) {
		peer->nid = p->source_nid;
		peer->pid = p->source_pid;
		peer->pt = pt;
		peer->used = 1u << 31;
	}
	int32_t age = peer->used >> channel & 1 ? (int32_t)(sequence - peer->last[channel]) : 1;
	if (age < 0) {
		s->received.outdated++;
		return 0;
	}
	if (age == 0) {
		s->received.duplicates++;
		*code = peer->answer[channel] >> 16;
		switch (peer->answer[channel] & 0xffff) {
		case MAILBOX_ACKED:
			return MAILBOX_KIND_ACK;
		case MAILBOX_NACKED:
			return MAILBOX_KIND_NACK;
		}
		return 0; /* on its way to the queue */
	}
	peer->used |= 1u << channel;
	peer->last[channel] = sequence;
	if (s->tail - s->head >= s->depth) {
		s->received.full++;
		*code = s->left ? MAILBOX_NACK_LEFT : MAILBOX_NACK_FULL;
		peer->answer[channel] = MAILBOX_NACKED | *code << 16;
		return MAILBOX_KIND_NACK;
	}
	peer->answer[channel] = MAILBOX_ONGOING;
	*turn = s->tail++;
	return MAILBOX_KIND_CELL;
}

/* deliver writes a message, and then the word in front of it. */
static int deliver(const ptl_payload_t *p, state_t *s, uint32_t length, uint32_t turn)
{
	uint64_t at = s->queue_start + (uint64_t)(turn & (s->depth - 1)) * MAILBOX_ENTRY_SIZE;
	mailbox_entry_t entry = {.turn = turn + 1, .nid = p->source_nid, .pid = p->source_pid, .pt = p->match_bits >> 24 & 0xff, .length = (uint16_t)length};
	int written = length ? PtlHandlerDMAToHostB((const void *)(uintptr_t)p->base, at + MAILBOX_WORD, length, PTL_HANDLER_HOST_MEM) : PTL_OK;
	if (written >= 0)
		written = PtlHandlerDMAToHostB(&entry, at, sizeof entry, PTL_HANDLER_HOST_MEM);
	return written;
}

SPIN_HANDLER(mailbox)(const ptl_payload_t *p, state_t *s)
{
	uint32_t channel = p->match_bits >> 20 & 0xf, length = p->match_bits >> 32 & 0xff, code = 0, turn = 0, kind = 0;
	mailbox_peer_t *peer = 0;
	ptl_process_t from = {.nid = p->source_nid, .pid = p->source_pid};
	if ((p->match_bits & 0xf) != MAILBOX_KIND_CELL || channel >= MAILBOX_CHANNELS || length > MAILBOX_MAX_PAYLOAD) {
		s->received.strange++;
		return PTL_SUCCESS;
	}
	lock(&s->padding);
	if (p->length < length || !p->length) {
		s->received.damaged++;
		kind = MAILBOX_KIND_NACK;
		code = MAILBOX_NACK_DAMAGED;
	} else if ((p->match_bits >> MAILBOX_PDID_SHIFT & 0xffff) != s->pdid) {
		s->received.foreign++;
		kind = MAILBOX_KIND_NACK;
		code = MAILBOX_NACK_FOREIGN;
	} else {
		kind = decide(p, s, length, &peer, &code, &turn);
	}
	unlock(&s->padding);
	if (kind == MAILBOX_KIND_CELL) {
		if (deliver(p, s, length, turn) < 0) {
			s->received.denied++;
			return PTL_FAIL;
		}
		s->received.messages++;
		if (s->arrived_ct)
			spin_ct_inc(s->arrived_ct, 1, 0);
		peer->answer[channel] = MAILBOX_ACKED;
		kind = MAILBOX_KIND_ACK;
	}
	if (!kind)
		return PTL_SUCCESS;
	ptl_op_t back = spin_op(0, PTL_NO_ACK_REQ, from, p->match_bits >> 24 & 0xff, bits(s, kind, channel, 0, code), 0, 0, p->hdr_data);
	back.options = SPIN_DATAGRAMS;
	return spin_put_from_device(&back) < 0 ? PTL_FAIL : PTL_SUCCESS;
}
