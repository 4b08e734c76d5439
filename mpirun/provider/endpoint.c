// Endpoints, and their messages.
#include "provider.h"

struct link_post *begin(struct endpoint *e, uint32_t kind, void *context)
{
	struct link_post *p = link_post(e->link);
	p->kind = kind;
	p->context = (uint64_t)context;
	p->endpoint = e->number;
	return p;
}

uint32_t quiet(struct endpoint *e, uint64_t flags, bool send, int kind)
{
	if (!(send ? e->quiet_sends : e->quiet_receives) || (flags & FI_COMPLETION))
		return 0;
	return e->counters[kind] ? POST_QUIET | POST_COUNTED : POST_QUIET;
}

// unseen is quiet of an operation that never has a completion.
static uint32_t unseen(struct endpoint *e, int kind) { return e->counters[kind] ? POST_QUIET | POST_COUNTED : POST_QUIET; }

ssize_t fits(const struct iovec *iov, size_t count, uint64_t flags)
{
	size_t length = 0;
	for (size_t i = 0; i < count; i++)
		length += iov[i].iov_len;
	if (count > IOV_LIMIT || length > 0x7fffffff)
		return -FI_EINVAL;
	return (flags & FI_INJECT) && length > LINK_INJECT ? -FI_EMSGSIZE : 0;
}

uint64_t steady(const struct iovec *iov, size_t count, uint64_t flags)
{
	size_t length = 0;
	for (size_t i = 0; i < count; i++) {
		length += iov[i].iov_len;
		if (!spinsim_before(iov[i].iov_base))
			return flags;
	}
	return length <= LINK_INJECT ? flags | FI_INJECT : flags;
}

void memory(struct link_post *p, const struct iovec *iov, size_t count, uint64_t flags)
{
	for (size_t i = 0; i < count; i++) {
		if (flags & FI_INJECT)
			memcpy(p->inlined + p->length, iov[i].iov_base, iov[i].iov_len);
		p->length += iov[i].iov_len;
	}
	p->addr = count ? (uint64_t)iov->iov_base : 0;
	if (flags & FI_INJECT) {
		p->flags |= POST_INLINED;
	} else if (count > 1) {
		p->flags |= POST_VECTOR;
		p->pieces = (uint16_t)count;
		memcpy(p->inlined, iov, count * sizeof *iov);
	}
}

// message is a message to send, or to receive.
struct message {
	const struct iovec *iov;
	size_t count;
	fi_addr_t peer;
	uint64_t tag, ignore, data, flags;
	bool has_data, untagged;
	void *context;
};

static ssize_t post_send(struct fid_ep *fid, const struct message *m, uint32_t more)
{
	struct endpoint *e = (struct endpoint *)fid;
	struct address a;
	uint64_t tags = e->tags;
	if (!e->enabled)
		return -FI_EOPBADSTATE;
	if (!target(e->vector, m->peer, &a))
		return -FI_EINVAL;
	if (a.endpoint)
		tags = TAG_OTHERS;
	uint64_t flags = steady(m->iov, m->count, m->flags);
	ssize_t error = m->tag & ~tags ? -FI_EINVAL : fits(m->iov, m->count, flags);
	if (error)
		return error;
	struct link_post *p = begin(e, POST_SEND, m->context);
	p->flags = more | (m->untagged ? POST_MESSAGE : 0) | (m->flags & FI_DELIVERY_COMPLETE ? POST_DELIVERED : 0);
	memory(p, m->iov, m->count, flags);
	p->tag = m->tag;
	p->data = m->data;
	p->has_data = m->has_data;
	p->peer = (int32_t)a.rank;
	p->peer_endpoint = (uint16_t)a.endpoint;
	return 0;
}

static ssize_t post_receive(struct fid_ep *fid, const struct message *m, uint32_t kind, uint32_t more)
{
	struct endpoint *e = (struct endpoint *)fid;
	struct address a = {-1, 0};
	if (!e->enabled)
		return -FI_EOPBADSTATE;
	if (e->directed && m->peer != FI_ADDR_UNSPEC && !target(e->vector, m->peer, &a))
		return -FI_EINVAL;
	ssize_t error = fits(m->iov, m->count, 0);
	if (error)
		return error;
	struct link_post *p = begin(e, kind, m->context);
	p->flags = more | (m->untagged ? POST_MESSAGE : 0);
	memory(p, m->iov, m->count, 0);
	if (m->flags & FI_MULTI_RECV) {
		p->flags |= POST_MULTI;
		p->access = e->multi_least;
	}
	p->tag = m->tag & e->tags;
	p->ignore = m->ignore & e->tags;
	p->peer = (int32_t)a.rank;
	p->peer_endpoint = (uint16_t)a.endpoint;
	return 0;
}

#define E ((struct endpoint *)fid)
#define SENT(flags) quiet(E, flags, true, COUNT_SEND)
#define GOT(flags) quiet(E, flags, false, COUNT_RECV)

static ssize_t t_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	return post_receive(fid, &(struct message){.iov = iov, .count = count, .peer = from, .tag = tag, .ignore = ignore, .context = context}, POST_RECEIVE, GOT(E->receive_flags));
}

static ssize_t t_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	return t_recvv(fid, &(struct iovec){buf, len}, NULL, 1, from, tag, ignore, context);
}

static ssize_t t_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *m, uint64_t flags)
{
	if (flags & FI_MULTI_RECV)
		return -FI_EOPNOTSUPP;
	if ((flags & FI_DISCARD) && !(flags & (FI_PEEK | FI_CLAIM)))
		return -FI_EINVAL; // only what is peeked at, or claimed, is discarded
	uint32_t kind = flags & FI_PEEK ? POST_PEEK : POST_RECEIVE, own = flags & FI_PEEK ? 0 : GOT(flags);
	if (flags & FI_CLAIM)
		own |= flags & FI_PEEK ? POST_CLAIM : POST_CLAIMED;
	if (flags & FI_DISCARD)
		own |= POST_DISCARD;
	return post_receive(fid, &(struct message){.iov = m->msg_iov, .count = m->iov_count, .peer = m->addr, .tag = m->tag, .ignore = m->ignore, .context = m->context}, kind, own);
}

static ssize_t t_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, uint64_t tag, void *context)
{
	uint64_t flags = E->send_flags;
	return post_send(fid, &(struct message){.iov = iov, .count = count, .peer = to, .tag = tag, .context = context, .flags = flags}, SENT(flags));
}

static ssize_t t_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag, void *context)
{
	return t_sendv(fid, &(struct iovec){(void *)buf, len}, NULL, 1, to, tag, context);
}

static ssize_t t_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *m, uint64_t flags)
{
	return post_send(fid, &(struct message){.iov = m->msg_iov, .count = m->iov_count, .peer = m->addr, .tag = m->tag, .has_data = flags & FI_REMOTE_CQ_DATA, .data = m->data, .context = m->context, .flags = flags}, SENT(flags));
}

static ssize_t t_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
	return post_send(fid, &(struct message){.iov = &(struct iovec){(void *)buf, len}, .count = 1, .peer = to, .tag = tag, .flags = FI_INJECT}, unseen(E, COUNT_SEND));
}

static ssize_t t_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, uint64_t tag, void *context)
{
	uint64_t flags = E->send_flags;
	return post_send(fid, &(struct message){.iov = &(struct iovec){(void *)buf, len}, .count = 1, .peer = to, .tag = tag, .has_data = true, .data = data, .context = context, .flags = flags}, SENT(flags));
}

static ssize_t t_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t tag)
{
	return post_send(fid, &(struct message){.iov = &(struct iovec){(void *)buf, len}, .count = 1, .peer = to, .tag = tag, .has_data = true, .data = data, .flags = FI_INJECT}, unseen(E, COUNT_SEND));
}

struct fi_ops_tagged tagged_ops = {
	sizeof tagged_ops, t_recv, t_recvv, t_recvmsg, t_send, t_sendv, t_sendmsg, t_inject, t_senddata, t_injectdata,
};

// Untagged messages are tagged ones of a space of their own.

static ssize_t m_recvmsg(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags)
{
	if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))
		return -FI_EOPNOTSUPP;
	if ((flags & FI_MULTI_RECV) && m->iov_count > 1)
		return -FI_EINVAL;
	return post_receive(fid, &(struct message){.iov = m->msg_iov, .count = m->iov_count, .peer = m->addr, .context = m->context, .flags = flags, .untagged = true}, POST_RECEIVE, GOT(flags));
}

static ssize_t m_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, void *context)
{
	return m_recvmsg(fid, &(struct fi_msg){.msg_iov = iov, .iov_count = count, .addr = from, .context = context}, E->receive_flags);
}

static ssize_t m_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
	return m_recvv(fid, &(struct iovec){buf, len}, NULL, 1, from, context);
}

static ssize_t m_sendmsg(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags)
{
	return post_send(fid, &(struct message){.iov = m->msg_iov, .count = m->iov_count, .peer = m->addr, .has_data = flags & FI_REMOTE_CQ_DATA, .data = m->data, .context = m->context, .flags = flags, .untagged = true}, SENT(flags));
}

static ssize_t m_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, void *context)
{
	return m_sendmsg(fid, &(struct fi_msg){.msg_iov = iov, .iov_count = count, .addr = to, .context = context}, E->send_flags & ~FI_REMOTE_CQ_DATA);
}

static ssize_t m_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
	return m_sendv(fid, &(struct iovec){(void *)buf, len}, NULL, 1, to, context);
}

static ssize_t m_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, void *context)
{
	return m_sendmsg(fid, &(struct fi_msg){.msg_iov = &(struct iovec){(void *)buf, len}, .iov_count = 1, .addr = to, .context = context, .data = data}, E->send_flags | FI_REMOTE_CQ_DATA);
}

static ssize_t m_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	return post_send(fid, &(struct message){.iov = &(struct iovec){(void *)buf, len}, .count = 1, .peer = to, .flags = FI_INJECT, .untagged = true}, unseen(E, COUNT_SEND));
}

static ssize_t m_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
	return post_send(fid, &(struct message){.iov = &(struct iovec){(void *)buf, len}, .count = 1, .peer = to, .has_data = true, .data = data, .flags = FI_INJECT, .untagged = true}, unseen(E, COUNT_SEND));
}

struct fi_ops_msg msg_ops = {
	sizeof msg_ops, m_recv, m_recvv, m_recvmsg, m_send, m_sendv, m_sendmsg, m_inject, m_senddata, m_injectdata,
};

#undef E

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct endpoint *e = (struct endpoint *)fid;
	begin(e, POST_CANCEL, context);
	link_yield(e->link, WHY_FULL, 0); // Open MPI waits for the completion only after success
	return e->link->arg ? 0 : -FI_ENOENT;
}

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = ((struct endpoint *)fid)->multi_least;
	*len = sizeof(size_t);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV || len < sizeof(size_t))
		return -FI_ENOPROTOOPT;
	((struct endpoint *)fid)->multi_least = *(const size_t *)value;
	return 0;
}

static int ep_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep, void *context) { return -FI_ENOSYS; }
static int ep_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **ep, void *context) { return -FI_ENOSYS; }
static ssize_t ep_size_left(struct fid_ep *ep) { return ((struct endpoint *)ep)->enabled ? LINK_POSTS : -FI_EOPBADSTATE; }

static struct fi_ops_ep ep_ops = {sizeof ep_ops, ep_cancel, ep_getopt, ep_setopt, ep_tx_ctx, ep_rx_ctx, ep_size_left, ep_size_left};

static int cm_getname(fid_t fid, void *addr, size_t *len)
{
	struct endpoint *e = (struct endpoint *)fid;
	struct address a = {e->link->rank, e->number};
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

static void bind_counter(struct endpoint *e, struct counter *c, uint64_t flags)
{
	static const uint64_t kinds[COUNTS] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
	for (int i = 0; i < COUNTS; i++)
		if (flags & kinds[i])
			e->counters[i] = c;
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct endpoint *e = (struct endpoint *)fid;
	switch (other->fclass) {
	case FI_CLASS_AV:
		e->vector = (struct vector *)other;
		return 0;
	case FI_CLASS_CQ:
		if (flags & FI_TRANSMIT)
			e->sends = (struct queue *)other;
		if (flags & FI_RECV)
			e->receives = (struct queue *)other;
		if (flags & FI_SELECTIVE_COMPLETION) {
			e->quiet_sends |= !!(flags & FI_TRANSMIT);
			e->quiet_receives |= !!(flags & FI_RECV);
		}
		return 0;
	case FI_CLASS_CNTR:
		bind_counter(e, (struct counter *)other, flags);
		return 0;
	case FI_CLASS_EQ:
		return 0; // it never has an event of the endpoint
	}
	return -FI_ENOSYS;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct endpoint *e = (struct endpoint *)fid;
	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	if (!e->vector)
		return -FI_ENOAV;
	e->enabled = true;
	spinsim_started();
	return 0;
}

static int ep_close(struct fid *fid)
{
	struct endpoint *e = (struct endpoint *)fid;
	if (e->link->state == LINK_RUNNING) {
		begin(e, POST_CANCEL, NULL)->flags = POST_QUIET;
		link_yield(e->link, WHY_FULL, 0);
	}
	spinsim_endpoints[e->number] = NULL;
	free(e);
	return 0;
}

static struct fi_ops ep_fid_ops = {sizeof ep_fid_ops, ep_close, ep_bind, ep_control, no_open, no_string, no_set};

// number returns a free number of an endpoint. Number 0 is for one with tags,
// since it has most of them, and without MPI for the first. Others come in turn: a peer may still have the
// address of one that is closed.
static int number(bool tags)
{
	static int latest;
	if ((tags || spinsim_alone()) && !spinsim_endpoints[0])
		return 0;
	for (int i = 1; i < LINK_ENDPOINTS; i++) {
		latest = latest % (LINK_ENDPOINTS - 1) + 1;
		if (!spinsim_endpoints[latest])
			return latest;
	}
	return -1;
}

int ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
	if (info->ep_attr && info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_UNSPEC)
		return -FI_EINVAL;
	int n = number(info->caps & FI_TAGGED);
	struct endpoint *e = n < 0 ? NULL : calloc(1, sizeof *e);
	if (!e)
		return n < 0 ? -FI_ENOSPC : -FI_ENOMEM;
	e->link = spinsim_link;
	e->number = (uint16_t)n;
	e->tags = n ? TAG_OTHERS : TAG_FORMAT;
	e->multi_least = 64;
	e->directed = info->caps & FI_DIRECTED_RECV;
	e->send_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	e->receive_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	e->fid = (struct fid_ep){.fid = {FI_CLASS_EP, context, &ep_fid_ops}, .ops = &ep_ops, .cm = &cm_ops, .msg = &msg_ops, .rma = &rma_ops, .tagged = &tagged_ops, .atomic = &atomic_ops};
	spinsim_endpoints[n] = e;
	*out = &e->fid;
	return 0;
}
