// Registered memory, one-sided operations and atomic ones.
#include "provider.h"

struct region {
	struct fid_mr fid;
	struct counter *counter; // of accesses of others
	bool events;
};

// Keys that the provider chooses are never used again.
static uint64_t next_key = 1;

static struct region **regions;
static size_t regions_count, regions_room;

static struct region *region_of(uint64_t key)
{
	for (size_t i = 0; i < regions_count; i++)
		if (regions[i]->fid.key == key)
			return regions[i];
	return NULL;
}

static void region_remove(struct region *m)
{
	for (size_t i = 0; i < regions_count; i++)
		if (regions[i] == m) {
			regions[i] = regions[--regions_count];
			return;
		}
}

static int region_add(struct region *m)
{
	if (regions_count == regions_room) {
		size_t room = regions_room ? 2 * regions_room : 64;
		struct region **more = realloc(regions, room * sizeof *more);
		if (!more)
			return -FI_ENOMEM;
		regions = more;
		regions_room = room;
	}
	regions[regions_count++] = m;
	return 0;
}

struct counter *counter_of(uint64_t key)
{
	struct region *m = region_of(key);
	return m ? m->counter : NULL;
}

static int mr_close(struct fid *fid)
{
	struct region *m = (struct region *)fid;
	if (spinsim_link->state != LINK_ENDED) {
		struct link_post *p = link_post(spinsim_link);
		p->kind = POST_FORGET;
		p->key = m->fid.key;
		if (spinsim_link->state == LINK_RUNNING)
			link_yield(spinsim_link, WHY_FULL, 0); // the memory may be gone after this call
	}
	region_remove(m);
	free(m);
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct region *m = (struct region *)fid;
	if (other->fclass == FI_CLASS_CNTR && m->events)
		m->counter = (struct counter *)other;
	else if (other->fclass != FI_CLASS_EP)
		return -FI_ENOSYS;
	return 0;
}
static int mr_control(struct fid *fid, int command, void *arg) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }

static struct fi_ops mr_fid_ops = {sizeof mr_fid_ops, mr_close, mr_bind, mr_control, no_open, no_string, no_set};

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *a, uint64_t flags, struct fid_mr **out)
{
	struct domain *d = (struct domain *)fid;
	bool basic = d->mr_mode == FI_MR_BASIC, own = basic || d->mr_mode & FI_MR_PROV_KEY;
	if (a->iov_count != 1 || a->mr_iov->iov_len == 0)
		return -FI_EINVAL;
	if (flags & ~(FI_RMA_EVENT | FI_RMA_PMEM))
		return -FI_EBADFLAGS;
	uint64_t key = own ? next_key : a->requested_key;
	if (key >> 32)
		return -FI_EKEYREJECTED;
	if (region_of(key))
		return -FI_ENOKEY;
	struct region *m = calloc(1, sizeof *m);
	int error = m ? region_add(m) : -FI_ENOMEM;
	if (error) {
		free(m);
		return error;
	}
	next_key += own;
	m->events = d->events;
	m->fid = (struct fid_mr){.fid = {FI_CLASS_MR, a->context, &mr_fid_ops}, .mem_desc = m, .key = key};
	struct link_post *p = link_post(spinsim_link);
	p->kind = POST_REGISTER;
	p->flags = (basic || d->mr_mode & FI_MR_VIRT_ADDR ? POST_VIRTUAL : 0) | (d->events ? POST_SEEN : 0);
	p->addr = (uint64_t)a->mr_iov->iov_base;
	p->length = a->mr_iov->iov_len;
	p->key = key;
	p->access = a->access & (ACCESS_READ | ACCESS_WRITE);
	*out = &m->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	return mr_regattr(fid, &(struct fi_mr_attr){.mr_iov = iov, .iov_count = count, .access = access, .offset = offset, .requested_key = key, .context = context}, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	return mr_regv(fid, &(struct iovec){(void *)buf, len}, 1, access, offset, key, flags, mr, context);
}

struct fi_ops_mr mr_ops = {sizeof mr_ops, mr_reg, mr_regv, mr_regattr};

// access is an operation on the memory of a peer.
struct access {
	uint32_t kind;
	const struct iovec *iov;
	size_t count;
	fi_addr_t peer;
	uint64_t remote, key, data, flags;
	void *context;
	enum fi_op op;
	enum fi_datatype type;
	void *result;
	const void *compare;
	bool unseen;
};

static ssize_t post_access(struct fid_ep *fid, const struct access *x)
{
	struct endpoint *e = (struct endpoint *)fid;
	struct address a;
	int kind = x->kind == POST_WRITE || x->kind == POST_ATOMIC ? COUNT_WRITE : COUNT_READ;
	if (!e->enabled)
		return -FI_EOPBADSTATE;
	if (!target(e->vector, x->peer, &a))
		return -FI_EINVAL;
	if (x->flags & FI_FENCE)
		return -FI_EOPNOTSUPP;
	bool from = x->kind != POST_READ && x->op != FI_ATOMIC_READ;
	uint64_t flags = from ? steady(x->iov, x->count, x->flags) : x->flags & ~FI_INJECT;
	ssize_t error = fits(x->iov, x->count, flags);
	if (error)
		return error;
	struct link_post *p = begin(e, x->kind, x->context);
	p->flags = x->unseen ? e->counters[kind] ? POST_QUIET | POST_COUNTED : POST_QUIET : quiet(e, flags, true, kind);
	memory(p, x->iov, x->count, flags);
	p->peer = (int32_t)a.rank;
	p->peer_endpoint = (uint16_t)a.endpoint;
	p->remote = x->remote;
	p->key = x->key;
	p->data = x->data;
	p->has_data = !!(flags & FI_REMOTE_CQ_DATA);
	p->op = (uint8_t)x->op;
	p->type = (uint8_t)x->type;
	p->result = (uint64_t)x->result;
	p->compare = (uint64_t)x->compare;
	return 0;
}

#define FLAGS (((struct endpoint *)fid)->send_flags & ~FI_REMOTE_CQ_DATA)
#define ONE .iov = &(struct iovec){(void *)buf, len}, .count = 1

static ssize_t r_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t from, uint64_t addr, uint64_t key, void *context)
{
	return post_access(fid, &(struct access){POST_READ, iov, count, from, addr, key, .flags = FLAGS, .context = context});
}

static ssize_t r_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t addr, uint64_t key, void *context)
{
	return r_readv(fid, &(struct iovec){buf, len}, NULL, 1, from, addr, key, context);
}

static ssize_t r_msg(struct fid_ep *fid, uint32_t kind, const struct fi_msg_rma *m, uint64_t flags)
{
	if (m->rma_iov_count != 1)
		return -FI_EINVAL;
	return post_access(fid, &(struct access){kind, m->msg_iov, m->iov_count, m->addr, m->rma_iov->addr, m->rma_iov->key, m->data, flags, m->context});
}

static ssize_t r_readmsg(struct fid_ep *fid, const struct fi_msg_rma *m, uint64_t flags) { return r_msg(fid, POST_READ, m, flags); }
static ssize_t r_writemsg(struct fid_ep *fid, const struct fi_msg_rma *m, uint64_t flags) { return r_msg(fid, POST_WRITE, m, flags); }

static ssize_t r_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count, fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	return post_access(fid, &(struct access){POST_WRITE, iov, count, to, addr, key, .flags = FLAGS, .context = context});
}

static ssize_t r_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	return r_writev(fid, &(struct iovec){(void *)buf, len}, NULL, 1, to, addr, key, context);
}

static ssize_t r_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t addr, uint64_t key)
{
	return post_access(fid, &(struct access){POST_WRITE, ONE, to, addr, key, .flags = FI_INJECT, .unseen = true});
}

static ssize_t r_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
	return post_access(fid, &(struct access){POST_WRITE, ONE, to, addr, key, data, FLAGS | FI_REMOTE_CQ_DATA, context});
}

static ssize_t r_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t to, uint64_t addr, uint64_t key)
{
	return post_access(fid, &(struct access){POST_WRITE, ONE, to, addr, key, data, FI_INJECT | FI_REMOTE_CQ_DATA, .unseen = true});
}

struct fi_ops_rma rma_ops = {
	sizeof rma_ops, r_read, r_readv, r_readmsg, r_write, r_writev, r_writemsg, r_inject, r_writedata, r_injectdata,
};

// Atomic operations: those that Portals has, on the types that it has them for.

static size_t size_of(enum fi_datatype type)
{
	static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, sizeof(long double), 2 * sizeof(long double)};
	return type <= FI_LONG_DOUBLE_COMPLEX ? sizes[type] : 0;
}

static bool legal(enum fi_datatype type, enum fi_op op)
{
	bool integer = type <= FI_UINT64, complex = type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX || type == FI_LONG_DOUBLE_COMPLEX;
	switch (op) {
	case FI_LOR: case FI_LAND: case FI_BOR: case FI_BAND: case FI_LXOR: case FI_BXOR: case FI_MSWAP:
		return integer;
	case FI_MIN: case FI_MAX: case FI_CSWAP_LE: case FI_CSWAP_LT: case FI_CSWAP_GE: case FI_CSWAP_GT:
		return !complex;
	default:
		return op <= FI_MSWAP;
	}
}

static int valid(uint32_t kind, enum fi_datatype type, enum fi_op op, size_t *count)
{
	bool swap = op >= FI_CSWAP, read = op == FI_ATOMIC_READ;
	if (!size_of(type) || !legal(type, op) || swap != (kind == POST_COMPARE) || (read && kind != POST_FETCH))
		return -FI_EOPNOTSUPP;
	*count = LINK_ATOMIC / size_of(type);
	return 0;
}

static ssize_t atomic(struct fid_ep *fid, struct access x, const void *buf, size_t count)
{
	size_t most;
	int error = valid(x.kind, x.type, x.op, &most);
	if (error)
		return error;
	if (count > most || count == 0)
		return -FI_EINVAL;
	x.iov = &(struct iovec){(void *)buf, count * size_of(x.type)};
	x.count = 1;
	return post_access(fid, &x);
}

static ssize_t a_write(struct fid_ep *fid, const void *buf, size_t count, void *desc, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	return atomic(fid, (struct access){.kind = POST_ATOMIC, .peer = to, .remote = addr, .key = key, .type = type, .op = op, .context = context, .flags = FLAGS}, buf, count);
}

static ssize_t a_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	return count != 1 ? -FI_EINVAL : a_write(fid, iov->addr, iov->count, NULL, to, addr, key, type, op, context);
}

static struct access of_message(uint32_t kind, const struct fi_msg_atomic *m, uint64_t flags)
{
	return (struct access){.kind = kind, .peer = m->addr, .remote = m->rma_iov->addr, .key = m->rma_iov->key, .type = m->datatype, .op = m->op, .context = m->context, .flags = flags & ~FI_REMOTE_CQ_DATA};
}

static ssize_t a_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *m, uint64_t flags)
{
	if (m->iov_count != 1 || m->rma_iov_count != 1)
		return -FI_EINVAL;
	return atomic(fid, of_message(POST_ATOMIC, m, flags), m->msg_iov->addr, m->msg_iov->count);
}

static ssize_t a_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op)
{
	return atomic(fid, (struct access){.kind = POST_ATOMIC, .peer = to, .remote = addr, .key = key, .type = type, .op = op, .flags = FI_INJECT, .unseen = true}, buf, count);
}

static ssize_t a_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, void *result, void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	return atomic(fid, (struct access){.kind = POST_FETCH, .peer = to, .remote = addr, .key = key, .type = type, .op = op, .context = context, .flags = FLAGS, .result = result}, buf, count);
}

static ssize_t a_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count, struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	if (result_count != 1 || (count != 1 && op != FI_ATOMIC_READ))
		return -FI_EINVAL;
	return a_readwrite(fid, count ? iov->addr : NULL, results->count, NULL, results->addr, NULL, to, addr, key, type, op, context);
}

static ssize_t a_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *m, struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
{
	if (result_count != 1 || m->rma_iov_count != 1 || (m->iov_count != 1 && m->op != FI_ATOMIC_READ))
		return -FI_EINVAL;
	struct access x = of_message(POST_FETCH, m, flags);
	x.result = results->addr;
	return atomic(fid, x, m->iov_count ? m->msg_iov->addr : NULL, results->count);
}

static ssize_t a_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, const void *compare, void *compare_desc, void *result, void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	return atomic(fid, (struct access){.kind = POST_COMPARE, .peer = to, .remote = addr, .key = key, .type = type, .op = op, .context = context, .flags = FLAGS, .result = result, .compare = compare}, buf, count);
}

static ssize_t a_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count, const struct fi_ioc *compare, void **compare_desc, size_t compare_count, struct fi_ioc *results, void **result_desc, size_t result_count, fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	if (count != 1 || compare_count != 1 || result_count != 1)
		return -FI_EINVAL;
	return a_compwrite(fid, iov->addr, iov->count, NULL, compare->addr, NULL, results->addr, NULL, to, addr, key, type, op, context);
}

static ssize_t a_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *m, const struct fi_ioc *compare, void **compare_desc, size_t compare_count, struct fi_ioc *results, void **result_desc, size_t result_count, uint64_t flags)
{
	if (m->iov_count != 1 || m->rma_iov_count != 1 || compare_count != 1 || result_count != 1)
		return -FI_EINVAL;
	struct access x = of_message(POST_COMPARE, m, flags);
	x.result = results->addr;
	x.compare = compare->addr;
	return atomic(fid, x, m->msg_iov->addr, m->msg_iov->count);
}

static int a_writevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count) { return valid(POST_ATOMIC, type, op, count); }
static int a_readwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count) { return valid(POST_FETCH, type, op, count); }
static int a_compwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count) { return valid(POST_COMPARE, type, op, count); }

struct fi_ops_atomic atomic_ops = {
	sizeof atomic_ops, a_write, a_writev, a_writemsg, a_inject, a_readwrite, a_readwritev, a_readwritemsg, a_compwrite, a_compwritev, a_compwritemsg,
	a_writevalid, a_readwritevalid, a_compwritevalid,
};

int query_atomic(struct fid_domain *d, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EOPNOTSUPP;
	uint32_t kind = flags & FI_FETCH_ATOMIC ? POST_FETCH : flags & FI_COMPARE_ATOMIC ? POST_COMPARE : POST_ATOMIC;
	int error = valid(kind, type, op, &attr->count);
	if (error)
		return error;
	attr->size = size_of(type);
	return 0;
}
