// A provider of libfabric 1.17 whose network is simulated: reliable datagrams
// with tags, for one endpoint and one completion queue.
#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "spinsim"
#define CAPS (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV)
#define ORDER FI_ORDER_SAS
#define OP_FLAGS (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

// The bits of a tag that the network compares. Open MPI takes those above for
// fewer communicators.
#define TAG_FORMAT 0x000007ffffffffffULL
#define TAG_MASK TAG_FORMAT

struct address {
	int64_t rank;
};

struct endpoint {
	struct fid_ep fid;
	struct link *link;
	struct vector *vector;
	uint64_t send_flags, receive_flags; // of operations that have none of their own
	bool quiet_sends, quiet_receives;   // FI_SELECTIVE_COMPLETION
};

struct queue {
	struct fid_cq fid;
	struct link *link;
	enum fi_cq_format format;
	uint32_t posted; // at the last empty poll
	int empty;       // polls in a row, without a post between
	struct link_done failed;
	bool has_failed;
};

struct vector {
	struct fid_av fid;
	struct link *link;
	size_t count, room; // of a table
	int64_t *ranks;
	bool table;
};

static int closed(struct fid *fid)
{
	free(fid);
	return 0;
}

static int no_bind(struct fid *fid, struct fid *other, uint64_t flags) { return -FI_ENOSYS; }
static int no_control(struct fid *fid, int command, void *arg) { return -FI_ENOSYS; }
static int no_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context) { return -FI_ENOSYS; }
static int no_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context) { return -FI_ENOSYS; }
static int no_string(const struct fid *fid, char *buf, size_t len) { return -FI_ENOSYS; }

static struct fi_ops plain = {sizeof(struct fi_ops), closed, no_bind, no_control, no_open, no_string, no_set};

// Address vectors: an address is a rank.

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *out, uint64_t flags, void *context)
{
	struct vector *v = (struct vector *)fid;
	const struct address *a = addr;
	for (size_t i = 0; i < count; i++) {
		if (v->table) {
			if (v->count == v->room) {
				size_t room = v->room ? 2 * v->room : 64;
				int64_t *more = realloc(v->ranks, room * sizeof *more);
				if (!more)
					return -FI_ENOMEM;
				v->ranks = more;
				v->room = room;
			}
			v->ranks[v->count] = a[i].rank;
		}
		if (a[i].rank < 0 || a[i].rank >= v->link->ranks) {
			if (out)
				out[i] = FI_ADDR_NOTAVAIL;
			return (int)i;
		}
		if (out)
			out[i] = v->table ? v->count : (fi_addr_t)a[i].rank;
		v->count++;
	}
	return (int)count;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addr, size_t count, uint64_t flags) { return 0; }

static int64_t rank_of(struct vector *v, fi_addr_t addr)
{
	if (addr == FI_ADDR_UNSPEC)
		return -1;
	if (!v || !v->table)
		return (int64_t)addr;
	return addr < v->count ? v->ranks[addr] : -2;
}

static int av_lookup(struct fid_av *fid, fi_addr_t at, void *addr, size_t *len)
{
	struct vector *v = (struct vector *)fid;
	struct address a = {rank_of(v, at)};
	if (a.rank < 0 || a.rank >= v->link->ranks)
		return -FI_EINVAL;
	memcpy(addr, &a, *len < sizeof a ? *len : sizeof a);
	*len = sizeof a;
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	char text[32];
	int n = snprintf(text, sizeof text, "rank %lld", (long long)((const struct address *)addr)->rank);
	if (*len > 0) {
		strncpy(buf, text, *len - 1);
		buf[*len - 1] = 0;
	}
	*len = (size_t)n + 1;
	return buf;
}

static int av_insertsvc(struct fid_av *av, const char *node, const char *service, fi_addr_t *addr, uint64_t flags, void *context) { return -FI_ENOSYS; }
static int av_insertsym(struct fid_av *av, const char *node, size_t nodes, const char *service, size_t services, fi_addr_t *addr, uint64_t flags, void *context) { return -FI_ENOSYS; }
static int av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context) { return -FI_ENOSYS; }

static struct fi_ops_av av_ops = {sizeof av_ops, av_insert, av_insertsvc, av_insertsym, av_remove, av_lookup, av_straddr, av_set};

static int av_close(struct fid *fid)
{
	free(((struct vector *)fid)->ranks);
	return closed(fid);
}

static struct fi_ops av_fid_ops = {sizeof av_fid_ops, av_close, no_bind, no_control, no_open, no_string, no_set};

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
	struct vector *v = calloc(1, sizeof *v);
	if (!v)
		return -FI_ENOMEM;
	v->link = spinsim_link;
	v->table = attr && attr->type == FI_AV_TABLE;
	v->fid = (struct fid_av){.fid = {FI_CLASS_AV, context, &av_fid_ops}, .ops = &av_ops};
	*out = &v->fid;
	return 0;
}

// Completion queues.

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
	struct link *l = q->link;
	size_t n = 0;
	for (; n < count && l->done_head != l->done_tail; n++) {
		struct link_done *d = &l->done[l->done_head % LINK_DONE];
		if (d->error) {
			if (n > 0)
				break;
			q->failed = *d;
			q->has_failed = true;
			l->done_head++;
			return -FI_EAVAIL;
		}
		if (from)
			from[n] = d->source < 0 ? FI_ADDR_NOTAVAIL : (fi_addr_t)d->source;
		entry(q, buf, n, d);
		l->done_head++;
	}
	return (ssize_t)n;
}

// spinsim_looking is above 0 while the program only looks: MPI_Test, MPI_Iprobe.
int spinsim_looking;

// PATIENCE is how many polls in a row find nothing, and nothing is posted
// between, before the program waits. Open MPI's own state machines (of
// communicators, of nonblocking collectives) take a step with each.
enum { PATIENCE = 8 };

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *from)
{
	struct queue *q = (struct queue *)fid;
	struct link *l = q->link;
	if (q->has_failed)
		return -FI_EAVAIL;
	ssize_t n = taken(q, buf, count, from);
	if (n == 0 && l->state == LINK_RUNNING && count > 0) {
		if (spinsim_looking) {
			link_yield(l, WHY_LOOK, 0);
			n = taken(q, buf, count, from);
		} else if (q->posted != link_posted) {
			q->empty = 0;
		} else if (++q->empty >= PATIENCE) {
			link_yield(l, WHY_WAIT, 0);
			n = taken(q, buf, count, from);
			q->empty = 0;
		}
	}
	if (n > 0)
		q->empty = 0;
	q->posted = link_posted;
	return n == 0 ? -FI_EAGAIN : n;
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
	return 1;
}

// A call that blocks: without a time limit it ends with a completion. The time
// limit is in virtual time.
static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *from, const void *cond, int timeout)
{
	struct queue *q = (struct queue *)fid;
	struct link *l = q->link;
	uint64_t end = l->now + (uint64_t)(timeout < 0 ? 0 : timeout) * 1000000000u;
	for (;;) {
		if (q->has_failed)
			return -FI_EAVAIL;
		ssize_t n = taken(q, buf, count, from);
		if (n != 0)
			return n;
		if (l->state != LINK_RUNNING || (timeout >= 0 && l->now >= end))
			return -FI_EAGAIN;
		link_yield(l, timeout < 0 ? WHY_WAIT : WHY_LOOK, 0);
	}
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid) { return -FI_ENOSYS; }

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *data, char *buf, size_t len)
{
	const char *text = strerror(prov_errno);
	if (buf && len > 0) {
		strncpy(buf, text, len - 1);
		buf[len - 1] = 0;
	}
	return text;
}

static struct fi_ops_cq cq_ops = {sizeof cq_ops, cq_read, cq_readfrom, cq_readerr, cq_sread, cq_sreadfrom, cq_signal, cq_strerror};

// A process has one queue and one endpoint: the link has one ring for all
// completions.
static bool has_queue, has_endpoint;

static int cq_close(struct fid *fid)
{
	has_queue = false;
	return closed(fid);
}

static struct fi_ops cq_fid_ops = {sizeof cq_fid_ops, cq_close, no_bind, no_control, no_open, no_string, no_set};

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
	if (has_queue)
		return -FI_ENOSPC;
	if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
		return -FI_ENOSYS;
	struct queue *q = calloc(1, sizeof *q);
	if (!q)
		return -FI_ENOMEM;
	q->link = spinsim_link;
	q->format = attr->format;
	q->fid = (struct fid_cq){.fid = {FI_CLASS_CQ, context, &cq_fid_ops}, .ops = &cq_ops};
	has_queue = true;
	*out = &q->fid;
	return 0;
}

// Endpoints.


static ssize_t post_send(struct endpoint *e, const void *buf, size_t len, fi_addr_t to, uint64_t tag, bool has_data, uint64_t data, void *context, uint64_t flags, uint32_t more)
{
	int64_t peer = rank_of(e->vector, to);
	if (peer < 0 || peer >= e->link->ranks || (tag & ~TAG_MASK))
		return -FI_EINVAL;
	if ((flags & FI_INJECT) && len > LINK_INJECT)
		return -FI_EMSGSIZE;
	struct link_post *p = link_post(e->link);
	p->kind = POST_SEND;
	p->flags = more;
	if (flags & FI_DELIVERY_COMPLETE)
		p->flags |= POST_DELIVERED;
	p->context = (uint64_t)context;
	p->addr = (uint64_t)buf;
	p->length = len;
	if (flags & FI_INJECT) {
		p->flags |= POST_INLINED;
		memcpy(p->inlined, buf, len);
	}
	p->tag = tag;
	p->data = data;
	p->has_data = has_data;
	p->peer = (int32_t)peer;
	return 0;
}

static ssize_t post_receive(struct endpoint *e, void *buf, size_t len, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context, uint32_t kind, uint32_t flags)
{
	int64_t peer = rank_of(e->vector, from);
	if (peer < -1 || peer >= e->link->ranks)
		return -FI_EINVAL;
	struct link_post *p = link_post(e->link);
	p->kind = kind;
	p->flags = flags;
	p->context = (uint64_t)context;
	p->addr = (uint64_t)buf;
	p->length = len;
	p->tag = tag & TAG_MASK;
	p->ignore = ignore & TAG_MASK;
	p->peer = (int32_t)peer;
	return 0;
}

// quiet says whether a send, or a receive, has no completion.
static uint32_t quiet(struct endpoint *e, uint64_t flags, bool send)
{
	return (send ? e->quiet_sends : e->quiet_receives) && !(flags & FI_COMPLETION) ? POST_QUIET : 0;
}

static ssize_t one(size_t count) { return count > 1 ? -FI_EINVAL : 0; }

static ssize_t t_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	struct endpoint *e = (struct endpoint *)fid;
	return post_receive(e, buf, len, from, tag, ignore, context, POST_RECEIVE, quiet(e, e->receive_flags, false));
}

static ssize_t t_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	return one(count) ? one(count) : t_recv(fid, count ? iov->iov_base : NULL, count ? iov->iov_len : 0, NULL, from, tag, ignore, context);
}

static ssize_t t_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *m, uint64_t flags)
{
	struct endpoint *e = (struct endpoint *)fid;
	if (m->iov_count > 1)
		return -FI_EINVAL;
	if ((flags & FI_DISCARD) && ((flags & FI_PEEK) || !(flags & FI_CLAIM)))
		return -FI_EOPNOTSUPP; // only a claimed message is discarded
	uint32_t kind = flags & FI_PEEK ? POST_PEEK : POST_RECEIVE, own = flags & FI_PEEK ? 0 : quiet(e, flags, false);
	if (flags & FI_CLAIM)
		own |= flags & FI_PEEK ? POST_CLAIM : POST_CLAIMED;
	if (flags & FI_DISCARD)
		own |= POST_DISCARD;
	return post_receive(e, m->iov_count ? m->msg_iov->iov_base : NULL, m->iov_count ? m->msg_iov->iov_len : 0, m->addr, m->tag, m->ignore, m->context, kind, own);
}

static ssize_t t_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag, void *context)
{
	struct endpoint *e = (struct endpoint *)fid;
	return post_send(e, buf, len, to, tag, false, 0, context, e->send_flags, quiet(e, e->send_flags, true));
}

static ssize_t t_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, uint64_t tag, void *context)
{
	return one(count) ? one(count) : t_send(fid, count ? iov->iov_base : NULL, count ? iov->iov_len : 0, NULL, to, tag, context);
}

static ssize_t t_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *m, uint64_t flags)
{
	struct endpoint *e = (struct endpoint *)fid;
	if (m->iov_count > 1)
		return -FI_EINVAL;
	return post_send(e, m->iov_count ? m->msg_iov->iov_base : NULL, m->iov_count ? m->msg_iov->iov_len : 0, m->addr, m->tag, flags & FI_REMOTE_CQ_DATA, m->data, m->context, flags, quiet(e, flags, true));
}

static ssize_t t_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	return post_send((struct endpoint *)fid, buf, len, to, tag, false, 0, NULL, FI_INJECT, POST_QUIET);
}

static ssize_t t_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, uint64_t tag, void *context)
{
	struct endpoint *e = (struct endpoint *)fid;
	return post_send(e, buf, len, to, tag, true, data, context, e->send_flags, quiet(e, e->send_flags, true));
}

static ssize_t t_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t tag)
{
	return post_send((struct endpoint *)fid, buf, len, to, tag, true, data, NULL, FI_INJECT, POST_QUIET);
}

static struct fi_ops_tagged tagged_ops = {
	sizeof tagged_ops, t_recv, t_recvv, t_recvmsg, t_send, t_sendv, t_sendmsg, t_inject, t_senddata, t_injectdata,
};

// Untagged messages are tagged ones of a space of their own.

static ssize_t m_recvmsg(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags)
{
	struct endpoint *e = (struct endpoint *)fid;
	if (m->iov_count > 1)
		return -FI_EINVAL;
	if (flags & (FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD))
		return -FI_EOPNOTSUPP;
	return post_receive(e, m->iov_count ? m->msg_iov->iov_base : NULL, m->iov_count ? m->msg_iov->iov_len : 0, m->addr, 0, 0, m->context, POST_RECEIVE, POST_MESSAGE | quiet(e, flags, false));
}

static ssize_t m_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	struct endpoint *e = (struct endpoint *)fid;
	return post_receive(e, buf, len, from, 0, 0, context, POST_RECEIVE, POST_MESSAGE | quiet(e, e->receive_flags, false));
}

static ssize_t m_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, void *context)
{
	return one(count) ? one(count) : m_recv(fid, count ? iov->iov_base : NULL, count ? iov->iov_len : 0, NULL, from, context);
}

static ssize_t m_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	struct endpoint *e = (struct endpoint *)fid;
	return post_send(e, buf, len, to, 0, false, 0, context, e->send_flags, POST_MESSAGE | quiet(e, e->send_flags, true));
}

static ssize_t m_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, void *context)
{
	return one(count) ? one(count) : m_send(fid, count ? iov->iov_base : NULL, count ? iov->iov_len : 0, NULL, to, context);
}

static ssize_t m_sendmsg(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags)
{
	struct endpoint *e = (struct endpoint *)fid;
	if (m->iov_count > 1)
		return -FI_EINVAL;
	return post_send(e, m->iov_count ? m->msg_iov->iov_base : NULL, m->iov_count ? m->msg_iov->iov_len : 0, m->addr, 0, flags & FI_REMOTE_CQ_DATA, m->data, m->context, flags, POST_MESSAGE | quiet(e, flags, true));
}

static ssize_t m_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	return post_send((struct endpoint *)fid, buf, len, to, 0, false, 0, NULL, FI_INJECT, POST_MESSAGE | POST_QUIET);
}

static ssize_t m_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, void *context)
{
	struct endpoint *e = (struct endpoint *)fid;
	return post_send(e, buf, len, to, 0, true, data, context, e->send_flags, POST_MESSAGE | quiet(e, e->send_flags, true));
}

static ssize_t m_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
	return post_send((struct endpoint *)fid, buf, len, to, 0, true, data, NULL, FI_INJECT, POST_MESSAGE | POST_QUIET);
}

static struct fi_ops_msg msg_ops = {
	sizeof msg_ops, m_recv, m_recvv, m_recvmsg, m_send, m_sendv, m_sendmsg, m_inject, m_senddata, m_injectdata,
};

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct endpoint *e = (struct endpoint *)fid;
	struct link_post *p = link_post(e->link);
	p->kind = POST_CANCEL;
	p->context = (uint64_t)context;
	link_yield(e->link, WHY_FULL, 0); // Open MPI waits for the completion only after success
	return e->link->arg ? 0 : -FI_ENOENT;
}

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len) { return -FI_ENOPROTOOPT; }
static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len) { return -FI_ENOPROTOOPT; }
static int ep_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep, void *context) { return -FI_ENOSYS; }
static int ep_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **ep, void *context) { return -FI_ENOSYS; }
static ssize_t ep_size_left(struct fid_ep *ep) { return LINK_POSTS; }

static struct fi_ops_ep ep_ops = {sizeof ep_ops, ep_cancel, ep_getopt, ep_setopt, ep_tx_ctx, ep_rx_ctx, ep_size_left, ep_size_left};

static int cm_getname(fid_t fid, void *addr, size_t *len)
{
	struct address a = {((struct endpoint *)fid)->link->rank};
	size_t room = *len;
	*len = sizeof a;
	if (room < sizeof a)
		return -FI_ETOOSMALL;
	memcpy(addr, &a, sizeof a);
	return 0;
}

static int cm_setname(fid_t fid, void *addr, size_t len) { return -FI_ENOSYS; }
static int cm_getpeer(struct fid_ep *ep, void *addr, size_t *len) { return -FI_ENOSYS; }
static int cm_connect(struct fid_ep *ep, const void *addr, const void *param, size_t len) { return -FI_ENOSYS; }
static int cm_listen(struct fid_pep *pep) { return -FI_ENOSYS; }
static int cm_accept(struct fid_ep *ep, const void *param, size_t len) { return -FI_ENOSYS; }
static int cm_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t len) { return -FI_ENOSYS; }
static int cm_shutdown(struct fid_ep *ep, uint64_t flags) { return -FI_ENOSYS; }
static int cm_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context) { return -FI_ENOSYS; }

static struct fi_ops_cm cm_ops = {sizeof cm_ops, cm_setname, cm_getname, cm_getpeer, cm_connect, cm_listen, cm_accept, cm_reject, cm_shutdown, cm_join};

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct endpoint *e = (struct endpoint *)fid;
	switch (other->fclass) {
	case FI_CLASS_AV:
		e->vector = (struct vector *)other;
		return 0;
	case FI_CLASS_CQ:
		if (flags & FI_SELECTIVE_COMPLETION) {
			e->quiet_sends |= !!(flags & FI_TRANSMIT);
			e->quiet_receives |= !!(flags & FI_RECV);
		}
		return 0;
	}
	return -FI_ENOSYS;
}

static int ep_control(struct fid *fid, int command, void *arg) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }

static int ep_close(struct fid *fid)
{
	has_endpoint = false;
	return closed(fid);
}

static struct fi_ops ep_fid_ops = {sizeof ep_fid_ops, ep_close, ep_bind, ep_control, no_open, no_string, no_set};

static int ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
	if (info->ep_attr && info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_UNSPEC)
		return -FI_EINVAL;
	if (has_endpoint)
		return -FI_ENOSPC;
	struct endpoint *e = calloc(1, sizeof *e);
	if (!e)
		return -FI_ENOMEM;
	has_endpoint = true;
	e->link = spinsim_link;
	e->send_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	e->receive_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	e->fid = (struct fid_ep){.fid = {FI_CLASS_EP, context, &ep_fid_ops}, .ops = &ep_ops, .cm = &cm_ops, .msg = &msg_ops, .tagged = &tagged_ops};
	*out = &e->fid;
	return 0;
}

static int ep_open2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, uint64_t flags, void *context)
{
	return ep_open(domain, info, out, context);
}

// Domains and fabrics.

static int no_scalable(struct fid_domain *d, struct fi_info *i, struct fid_ep **ep, void *context) { return -FI_ENOSYS; }
static int no_cntr(struct fid_domain *d, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context) { return -FI_ENOSYS; }
static int no_poll(struct fid_domain *d, struct fi_poll_attr *attr, struct fid_poll **poll) { return -FI_ENOSYS; }
static int no_stx(struct fid_domain *d, struct fi_tx_attr *attr, struct fid_stx **stx, void *context) { return -FI_ENOSYS; }
static int no_srx(struct fid_domain *d, struct fi_rx_attr *attr, struct fid_ep **ep, void *context) { return -FI_ENOSYS; }
static int no_atomic(struct fid_domain *d, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags) { return -FI_EOPNOTSUPP; }
static int no_collective(struct fid_domain *d, enum fi_collective_op op, struct fi_collective_attr *attr, uint64_t flags) { return -FI_EOPNOTSUPP; }

static struct fi_ops_domain domain_ops = {
	sizeof domain_ops, av_open, cq_open, ep_open, no_scalable, no_cntr, no_poll, no_stx, no_srx, no_atomic, no_collective, ep_open2,
};

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context) { return -FI_ENOSYS; }
static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context) { return -FI_ENOSYS; }
static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr) { return -FI_ENOSYS; }

static struct fi_ops_mr mr_ops = {sizeof mr_ops, mr_reg, mr_regv, mr_regattr};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out, void *context)
{
	struct fid_domain *d = calloc(1, sizeof *d);
	if (!d)
		return -FI_ENOMEM;
	*d = (struct fid_domain){.fid = {FI_CLASS_DOMAIN, context, &plain}, .ops = &domain_ops, .mr = &mr_ops};
	*out = d;
	return 0;
}

static int domain_open2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out, uint64_t flags, void *context)
{
	return domain_open(fabric, info, out, context);
}

static int no_passive(struct fid_fabric *f, struct fi_info *info, struct fid_pep **pep, void *context) { return -FI_ENOSYS; }
static int no_eq(struct fid_fabric *f, struct fi_eq_attr *attr, struct fid_eq **eq, void *context) { return -FI_ENOSYS; }
static int no_wait(struct fid_fabric *f, struct fi_wait_attr *attr, struct fid_wait **set) { return -FI_ENOSYS; }
static int no_trywait(struct fid_fabric *f, struct fid **fids, int count) { return -FI_ENOSYS; }

static struct fi_ops_fabric fabric_ops = {sizeof fabric_ops, domain_open, no_passive, no_eq, no_wait, no_trywait, domain_open2};

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	if (attr->name && strcmp(attr->name, NAME) != 0)
		return -FI_ENODATA;
	struct fid_fabric *f = calloc(1, sizeof *f);
	if (!f)
		return -FI_ENOMEM;
	*f = (struct fid_fabric){.fid = {FI_CLASS_FABRIC, context, &plain}, .ops = &fabric_ops};
	*out = f;
	return 0;
}

// What the provider offers. The memory is libfabric's to free, piece by piece.

static bool suits(const struct fi_info *h)
{
	if (!h)
		return true;
	if (h->caps & ~(uint64_t)CAPS)
		return false;
	if (h->fabric_attr && h->fabric_attr->prov_name && !strstr(h->fabric_attr->prov_name, NAME))
		return false;
	if (h->fabric_attr && h->fabric_attr->name && strcmp(h->fabric_attr->name, NAME) != 0)
		return false;
	if (h->domain_attr && h->domain_attr->name && strcmp(h->domain_attr->name, NAME) != 0)
		return false;
	if (h->domain_attr && h->domain_attr->threading == FI_THREAD_SAFE)
		return false;
	if (h->domain_attr && h->domain_attr->cq_data_size > sizeof(uint64_t))
		return false;
	if (h->ep_attr && h->ep_attr->type != FI_EP_UNSPEC && h->ep_attr->type != FI_EP_RDM)
		return false;
	if (h->tx_attr && ((h->tx_attr->msg_order & ~(uint64_t)ORDER) || h->tx_attr->inject_size > LINK_INJECT || (h->tx_attr->op_flags & ~(uint64_t)OP_FLAGS) || h->tx_attr->iov_limit > 1))
		return false;
	if (h->rx_attr && ((h->rx_attr->msg_order & ~(uint64_t)ORDER) || h->rx_attr->iov_limit > 1))
		return false;
	return true;
}

#define NEW(pointer) ((pointer) = calloc(1, sizeof *(pointer)))

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *h, struct fi_info **out)
{
	struct fi_info *i;
	if (!suits(h) || !link_open())
		return -FI_ENODATA;
	if (!NEW(i))
		return -FI_ENOMEM;
	struct address *a;
	if (!NEW(i->tx_attr) || !NEW(i->rx_attr) || !NEW(i->ep_attr) || !NEW(i->domain_attr) || !NEW(i->fabric_attr) || !NEW(a))
		return -FI_ENOMEM;
	i->caps = h && h->caps ? h->caps : CAPS;
	i->addr_format = FI_FORMAT_UNSPEC;
	a->rank = spinsim_link->rank;
	i->src_addr = a;
	i->src_addrlen = sizeof *a;
	*i->tx_attr = (struct fi_tx_attr){
		.caps = i->caps & (FI_MSG | FI_TAGGED | FI_SEND), .op_flags = h && h->tx_attr ? h->tx_attr->op_flags : 0, .msg_order = ORDER,
		.inject_size = LINK_INJECT, .size = LINK_POSTS, .iov_limit = 1,
	};
	*i->rx_attr = (struct fi_rx_attr){
		.caps = i->caps & (FI_MSG | FI_TAGGED | FI_RECV | FI_DIRECTED_RECV), .op_flags = h && h->rx_attr ? h->rx_attr->op_flags : 0, .msg_order = ORDER,
		.size = LINK_POSTS, .iov_limit = 1,
	};
	*i->ep_attr = (struct fi_ep_attr){
		.type = FI_EP_RDM, .protocol_version = 1, .max_msg_size = 0x7fffffff, .mem_tag_format = TAG_FORMAT, .tx_ctx_cnt = 1, .rx_ctx_cnt = 1,
	};
	*i->domain_attr = (struct fi_domain_attr){
		.name = strdup(NAME), .threading = FI_THREAD_DOMAIN, .control_progress = FI_PROGRESS_AUTO, .data_progress = FI_PROGRESS_AUTO,
		.resource_mgmt = FI_RM_ENABLED, .av_type = h && h->domain_attr ? h->domain_attr->av_type : FI_AV_UNSPEC, .cq_data_size = sizeof(uint64_t),
		.cq_cnt = 1, .ep_cnt = 1, .tx_ctx_cnt = 1, .rx_ctx_cnt = 1, .max_ep_tx_ctx = 1, .max_ep_rx_ctx = 1, .mr_iov_limit = 1,
		.caps = FI_LOCAL_COMM | FI_REMOTE_COMM,
	};
	*i->fabric_attr = (struct fi_fabric_attr){.name = strdup(NAME), .prov_name = strdup(NAME), .prov_version = FI_VERSION(1, 0), .api_version = version};
	*out = i;
	return 0;
}

static void cleanup(void) {}

static struct fi_provider provider = {
	.version = FI_VERSION(1, 0), .fi_version = FI_VERSION(1, 17), .name = NAME, .getinfo = getinfo, .fabric = fabric_open, .cleanup = cleanup,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void) { return &provider; }
