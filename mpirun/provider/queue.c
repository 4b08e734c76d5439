// Completion queues, counters, sets of them, and queues of events.
#include "provider.h"

#include <stdio.h>

struct endpoint *spinsim_endpoints[LINK_ENDPOINTS];

static void add(struct queue *q, const struct link_done *d)
{
	if (q->first > 0 && q->first + q->count == q->room) {
		memmove(q->list, q->list + q->first, q->count * sizeof *q->list);
		q->first = 0;
	}
	if (q->count == q->room) {
		size_t room = q->room ? 2 * q->room : 64;
		struct link_done *more = realloc(q->list, room * sizeof *more);
		if (!more)
			abort(); // a completion must not get lost
		q->list = more;
		q->room = room;
	}
	q->list[q->first + q->count++] = *d;
}

static int kind_of(const struct link_done *d)
{
	static const uint64_t flags[COUNTS] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
	for (int i = 0; i < COUNTS; i++)
		if (d->flags & flags[i])
			return i;
	return COUNTS;
}

// arrivals counts completions and ends of waits.
static uint64_t arrivals;

// pump gives all completions to the queues and counters of their endpoints.
static void pump(void)
{
	struct link *l = spinsim_link;
	if (l->done_tail - l->done_head > LINK_DONE) {
		fprintf(stderr, "spinsim: the process has spoiled the memory that it shares with the simulator: %u completions taken of %u\n", l->done_head, l->done_tail);
		_exit(1);
	}
	for (; l->done_head != l->done_tail; l->done_head++) {
		arrivals++;
		struct link_done *d = &l->done[l->done_head % LINK_DONE];
		struct endpoint *e = d->endpoint < LINK_ENDPOINTS ? spinsim_endpoints[d->endpoint] : NULL;
		int kind = kind_of(d);
		if (!e || kind == COUNTS)
			continue;
		struct counter *c = e->counters[kind];
		if (c && d->error)
			c->errors++;
		else if (c)
			c->value++;
		if (kind >= COUNT_REMOTE_READ && (c = counter_of(d->tag)))
			c->value++;
		bool receives = kind == COUNT_RECV || kind >= COUNT_REMOTE_READ;
		struct queue *q = receives ? e->receives : e->sends;
		if (q && (d->error || !d->quiet))
			add(q, d);
	}
}

// spinsim_looking is above 0 while the program only looks: MPI_Test, MPI_Iprobe.
int spinsim_looking;

// PATIENCE is how many polls in a row find nothing, and nothing is posted and
// nothing comes for another queue between, before the program waits. Open MPI's
// own state machines (of communicators, of nonblocking collectives) take a step
// with every eighth.
enum { PATIENCE = 32 };

// spinsim_stepped is called when such a state machine begins or ends, or the program
// begins to wait for one: polls before it were for something else. Nothing else
// says so in a communicator of one process, which posts nothing.
void spinsim_stepped(void) { arrivals++; }

// looked is called after a look that has found nothing. It returns true if there
// may be more now.
static bool looked(struct patience *p)
{
	struct link *l = spinsim_link;
	bool again = false;
	if (l->state != LINK_RUNNING)
		return false;
	if (spinsim_looking) {
		link_yield(l, WHY_LOOK, 0);
		again = true;
	} else if (p->posted != link_posted || p->arrivals != arrivals) {
		p->empty = 0;
	} else if (++p->empty >= PATIENCE) {
		link_yield(l, WHY_WAIT, 0);
		arrivals++; // or a peer has reached for memory that the program looks at
		p->empty = 0;
		again = true;
	}
	p->posted = link_posted;
	p->arrivals = arrivals;
	return again;
}

static void entry(struct queue *q, void *buf, size_t i, const struct link_done *d)
{
	struct fi_cq_tagged_entry e = {(void *)d->context, d->flags, d->length, (void *)d->addr, d->data, d->tag};
	static const size_t sizes[] = {
		[FI_CQ_FORMAT_UNSPEC] = sizeof e, [FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry), [FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
		[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry), [FI_CQ_FORMAT_TAGGED] = sizeof e,
	};
	size_t size = sizes[q->format]; // each format begins as the next larger one
	memcpy((char *)buf + i * size, &e, size);
}

static ssize_t taken(struct queue *q, void *buf, size_t count, fi_addr_t *from)
{
	size_t n = 0;
	pump();
	for (; n < count && q->count > 0; n++) {
		struct link_done *d = &q->list[q->first];
		if (d->error && n > 0)
			break;
		q->first++;
		if (--q->count == 0)
			q->first = 0;
		if (d->error) {
			q->failed = *d;
			q->has_failed = true;
			return -FI_EAVAIL;
		}
		struct endpoint *e = spinsim_endpoints[d->endpoint];
		if (from)
			from[n] = e ? source(e->vector, (struct address){d->source, d->source_endpoint}) : FI_ADDR_NOTAVAIL;
		entry(q, buf, n, d);
	}
	return (ssize_t)n;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *from)
{
	struct queue *q = (struct queue *)fid;
	if (q->has_failed)
		return -FI_EAVAIL;
	ssize_t n = taken(q, buf, count, from);
	if (n == 0 && count > 0 && looked(&q->patience))
		n = taken(q, buf, count, from);
	if (n == 0)
		return -FI_EAGAIN;
	q->patience.empty = 0;
	return n;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count) { return cq_readfrom(fid, buf, count, NULL); }

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct queue *q = (struct queue *)fid;
	if (!q->has_failed)
		return -FI_EAGAIN;
	struct link_done *d = &q->failed;
	q->has_failed = false;
	buf->op_context = (void *)d->context;
	buf->flags = d->flags;
	buf->len = d->length;
	buf->buf = (void *)d->addr;
	buf->data = d->data;
	buf->tag = d->tag;
	buf->olen = d->over;
	buf->err = d->error;
	buf->prov_errno = d->error;
	buf->err_data_size = 0;
	return 1;
}

// waited waits for the next completion of the process, and returns false when the
// time limit, in virtual time, has passed, or there is nothing to wait for. With a
// time limit it looks again and again, and after LOOKS looks less and less often.
static bool waited(int timeout, uint64_t end, int *looks)
{
	enum { LOOKS = 1000, DOUBLED = 20 };
	struct link *l = spinsim_link;
	if (l->state != LINK_RUNNING || (timeout >= 0 && l->now >= end))
		return false;
	int more = ++*looks - LOOKS;
	if (timeout < 0)
		link_yield(l, WHY_WAIT, 0);
	else if (more <= 0)
		link_yield(l, WHY_LOOK, 0);
	else
		link_yield(l, WHY_SLEEP, (uint64_t)1000 << (more < DOUBLED ? more : DOUBLED)); // to 1 ms
	return true;
}

static uint64_t end_of(int timeout) { return spinsim_link->now + (uint64_t)(timeout < 0 ? 0 : timeout) * 1000000000u; }

// A call that blocks: without a time limit it ends with a completion.
static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *from, const void *cond, int timeout)
{
	struct queue *q = (struct queue *)fid;
	uint64_t end = end_of(timeout);
	int looks = 0;
	do {
		if (q->has_failed)
			return -FI_EAVAIL;
		ssize_t n = taken(q, buf, count, from);
		if (n != 0)
			return n;
	} while (waited(timeout, end, &looks));
	return -FI_EAGAIN;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid) { return -FI_ENOSYS; }

static const char *text_of(int error, char *buf, size_t len)
{
	const char *text = fi_strerror(error);
	if (buf && len > 0)
		snprintf(buf, len, "%s", text);
	return text;
}

static const char *cq_strerror(struct fid_cq *fid, int error, const void *data, char *buf, size_t len) { return text_of(error, buf, len); }

static struct fi_ops_cq cq_ops = {sizeof cq_ops, cq_read, cq_readfrom, cq_readerr, cq_sread, cq_sreadfrom, cq_signal, cq_strerror};

static int cq_close(struct fid *fid)
{
	struct queue *q = (struct queue *)fid;
	for (int i = 0; i < LINK_ENDPOINTS; i++)
		if (spinsim_endpoints[i] && (spinsim_endpoints[i]->sends == q || spinsim_endpoints[i]->receives == q))
			return -FI_EBUSY;
	free(q->list);
	free(q);
	return 0;
}

static struct fi_ops cq_fid_ops = {sizeof cq_fid_ops, cq_close, no_bind, no_control, no_open, no_string, no_set};

int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
	if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
		return -FI_ENOSYS;
	struct queue *q = calloc(1, sizeof *q);
	if (!q)
		return -FI_ENOMEM;
	if (attr && attr->format == FI_CQ_FORMAT_UNSPEC)
		attr->format = FI_CQ_FORMAT_TAGGED;
	q->format = attr ? attr->format : FI_CQ_FORMAT_TAGGED;
	q->fid = (struct fid_cq){.fid = {FI_CLASS_CQ, context, &cq_fid_ops}, .ops = &cq_ops};
	*out = &q->fid;
	return 0;
}

// Counters.

static uint64_t cntr_get(struct counter *c, uint64_t *word)
{
	uint64_t was = *word;
	pump();
	if (*word == was && looked(&c->patience))
		pump();
	if (*word != was)
		c->patience.empty = 0;
	return *word;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct counter *c = (struct counter *)fid;
	return cntr_get(c, &c->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	pump();
	return ((struct counter *)fid)->errors;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	((struct counter *)fid)->value += value;
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	((struct counter *)fid)->value = value;
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	((struct counter *)fid)->errors += value;
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	((struct counter *)fid)->errors = value;
	return 0;
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct counter *c = (struct counter *)fid;
	uint64_t end = end_of(timeout), errors = c->errors;
	int looks = 0;
	do {
		pump();
		if (c->value >= threshold)
			return 0;
		if (c->errors != errors)
			return -FI_EAVAIL;
	} while (waited(timeout, end, &looks));
	return -FI_ETIMEDOUT;
}

static struct fi_ops_cntr cntr_ops = {sizeof cntr_ops, cntr_read, cntr_readerr, cntr_add, cntr_set, cntr_wait, cntr_adderr, cntr_seterr};

static int cntr_close(struct fid *fid)
{
	for (int i = 0; i < LINK_ENDPOINTS; i++)
		for (int kind = 0; spinsim_endpoints[i] && kind < COUNTS; kind++)
			if (&spinsim_endpoints[i]->counters[kind]->fid.fid == fid)
				return -FI_EBUSY;
	free(fid);
	return 0;
}

static struct fi_ops cntr_fid_ops = {sizeof cntr_fid_ops, cntr_close, no_bind, no_control, no_open, no_string, no_set};

int cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **out, void *context)
{
	if (attr && (attr->events != FI_CNTR_EVENTS_COMP || (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)))
		return -FI_ENOSYS;
	struct counter *c = calloc(1, sizeof *c);
	if (!c)
		return -FI_ENOMEM;
	c->fid = (struct fid_cntr){.fid = {FI_CLASS_CNTR, context, &cntr_fid_ops}, .ops = &cntr_ops};
	*out = &c->fid;
	return 0;
}

// Sets of queues and counters.

enum { SET = 64 };

struct set {
	struct fid_poll fid;
	struct patience patience;
	struct fid *list[SET];
	uint64_t seen[SET]; // of counters
	int count;
};

static int found(struct set *s, void **context, int count)
{
	int n = 0;
	pump();
	for (int i = 0; i < s->count && n < count; i++) {
		struct fid *f = s->list[i];
		struct queue *q = (struct queue *)f;
		struct counter *c = (struct counter *)f;
		bool is = f->fclass == FI_CLASS_CQ ? q->count > 0 || q->has_failed : c->value + c->errors != s->seen[i];
		if (f->fclass == FI_CLASS_CNTR)
			s->seen[i] = c->value + c->errors;
		if (is)
			context[n++] = f->context;
	}
	return n;
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct set *s = (struct set *)fid;
	int n = found(s, context, count);
	if (n == 0 && looked(&s->patience))
		n = found(s, context, count);
	return n;
}

static int poll_add(struct fid_poll *fid, struct fid *f, uint64_t flags)
{
	struct set *s = (struct set *)fid;
	if (f->fclass != FI_CLASS_CQ && f->fclass != FI_CLASS_CNTR)
		return -FI_EINVAL;
	if (s->count == SET)
		return -FI_ENOSPC;
	s->seen[s->count] = 0;
	s->list[s->count++] = f;
	return 0;
}

static int poll_del(struct fid_poll *fid, struct fid *f, uint64_t flags)
{
	struct set *s = (struct set *)fid;
	for (int i = 0; i < s->count; i++)
		if (s->list[i] == f) {
			s->list[i] = s->list[--s->count];
			s->seen[i] = s->seen[s->count];
			return 0;
		}
	return -FI_EINVAL;
}

static struct fi_ops_poll poll_ops = {sizeof poll_ops, poll_poll, poll_add, poll_del};

static int plain_close(struct fid *fid)
{
	free(fid);
	return 0;
}

static struct fi_ops plain_ops = {sizeof plain_ops, plain_close, no_bind, no_control, no_open, no_string, no_set};

int poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **out)
{
	struct set *s = calloc(1, sizeof *s);
	if (!s)
		return -FI_ENOMEM;
	s->fid = (struct fid_poll){.fid = {FI_CLASS_POLL, NULL, &plain_ops}, .ops = &poll_ops};
	*out = &s->fid;
	return 0;
}

// Queues of events have what the program writes itself: the provider has none.

enum { EVENTS = 256, EVENT_BYTES = 64 };

struct events {
	struct fid_eq fid;
	struct {
		uint32_t event;
		size_t length;
		char bytes[EVENT_BYTES];
	} list[EVENTS];
	size_t head, tail, size;
	bool writable;
};

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct events *q = (struct events *)fid;
	if (q->head == q->tail)
		return -FI_EAGAIN;
	size_t at = q->head % EVENTS, n = q->list[at].length;
	if (len < n)
		return -FI_ETOOSMALL;
	*event = q->list[at].event;
	memcpy(buf, q->list[at].bytes, n);
	if (!(flags & FI_PEEK))
		q->head++;
	return (ssize_t)n;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags) { return -FI_EAGAIN; }

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	struct events *q = (struct events *)fid;
	if (!q->writable)
		return -FI_EINVAL;
	if (len > EVENT_BYTES)
		return -FI_EMSGSIZE;
	if (q->tail - q->head == EVENTS)
		return -FI_EAGAIN;
	size_t at = q->tail++ % EVENTS;
	q->list[at].event = event;
	q->list[at].length = len;
	memcpy(q->list[at].bytes, buf, len);
	return (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout, uint64_t flags)
{
	ssize_t n = eq_read(fid, event, buf, len, flags);
	if (n != -FI_EAGAIN || timeout < 0 || spinsim_link->state != LINK_RUNNING)
		return n; // nobody would write meanwhile
	link_yield(spinsim_link, WHY_SLEEP, (uint64_t)timeout * 1000000000u);
	return n;
}

static const char *eq_strerror(struct fid_eq *fid, int error, const void *data, char *buf, size_t len) { return text_of(error, buf, len); }

static struct fi_ops_eq eq_ops = {sizeof eq_ops, eq_read, eq_readerr, eq_write, eq_sread, eq_strerror};

int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out, void *context)
{
	if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
		return -FI_ENOSYS;
	struct events *q = calloc(1, sizeof *q);
	if (!q)
		return -FI_ENOMEM;
	q->writable = attr && attr->flags & FI_WRITE;
	q->fid = (struct fid_eq){.fid = {FI_CLASS_EQ, context, &plain_ops}, .ops = &eq_ops};
	*out = &q->fid;
	return 0;
}
