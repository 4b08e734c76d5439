// Address vectors: an address is a rank and the number of its endpoint.
#include "provider.h"

#include <stdio.h>

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *out, uint64_t flags, void *context)
{
	struct vector *v = (struct vector *)fid;
	const struct address *a = addr;
	int good = 0;
	for (size_t i = 0; i < count; i++) {
		bool is = a[i].rank >= 0 && a[i].rank < spinsim_link->ranks && a[i].endpoint >= 0 && a[i].endpoint < LINK_ENDPOINTS;
		if (flags & FI_SYNC_ERR)
			((int *)context)[i] = is ? 0 : FI_EINVAL;
		if (!is) {
			if (out)
				out[i] = FI_ADDR_NOTAVAIL;
			continue;
		}
		if (v->table && v->count == v->room) {
			size_t room = v->room ? 2 * v->room : 64;
			struct address *more = realloc(v->list, room * sizeof *more);
			if (!more)
				return -FI_ENOMEM;
			v->list = more;
			v->room = room;
		}
		if (v->table)
			v->list[v->count] = a[i];
		if (out)
			out[i] = v->table ? v->count : (fi_addr_t)a[i].rank | (fi_addr_t)a[i].endpoint << 32;
		v->count++;
		good++;
	}
	return good;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addr, size_t count, uint64_t flags)
{
	struct vector *v = (struct vector *)fid;
	for (size_t i = 0; v->table && i < count; i++) {
		if (addr[i] >= v->count)
			return -FI_EINVAL;
		v->list[addr[i]].rank = -1;
	}
	return 0;
}

bool target(struct vector *v, fi_addr_t addr, struct address *out)
{
	if (!v || (v->table && addr >= v->count))
		return false;
	*out = v->table ? v->list[addr] : (struct address){(int64_t)(addr & 0xffffffff), (int64_t)(addr >> 32)};
	return out->rank >= 0 && out->rank < spinsim_link->ranks && out->endpoint < LINK_ENDPOINTS;
}

fi_addr_t source(struct vector *v, struct address a)
{
	if (!v || a.rank < 0)
		return FI_ADDR_NOTAVAIL;
	if (!v->table)
		return (fi_addr_t)a.rank | (fi_addr_t)a.endpoint << 32;
	for (size_t i = 0; i < v->count; i++)
		if (v->list[i].rank == a.rank && v->list[i].endpoint == a.endpoint)
			return i;
	return FI_ADDR_NOTAVAIL;
}

static int av_lookup(struct fid_av *fid, fi_addr_t at, void *addr, size_t *len)
{
	struct address a;
	if (!target((struct vector *)fid, at, &a))
		return -FI_EINVAL;
	memcpy(addr, &a, *len < sizeof a ? *len : sizeof a);
	*len = sizeof a;
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	const struct address *a = addr;
	size_t n = (size_t)snprintf(buf, *len, "rank %lld endpoint %lld", (long long)a->rank, (long long)a->endpoint);
	*len = n + 1;
	return buf;
}

static int av_insertsvc(struct fid_av *av, const char *node, const char *service, fi_addr_t *addr, uint64_t flags, void *context) { return -FI_ENOSYS; }
static int av_insertsym(struct fid_av *av, const char *node, size_t nodes, const char *service, size_t services, fi_addr_t *addr, uint64_t flags, void *context) { return -FI_ENOSYS; }
static int av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context) { return -FI_ENOSYS; }

static struct fi_ops_av av_ops = {sizeof av_ops, av_insert, av_insertsvc, av_insertsym, av_remove, av_lookup, av_straddr, av_set};

static int av_close(struct fid *fid)
{
	free(((struct vector *)fid)->list);
	free(fid);
	return 0;
}

static struct fi_ops av_fid_ops = {sizeof av_fid_ops, av_close, no_bind, no_control, no_open, no_string, no_set};

int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
	if (attr && (attr->flags || attr->name))
		return -FI_ENOSYS; // neither events nor vectors of several processes
	struct vector *v = calloc(1, sizeof *v);
	if (!v)
		return -FI_ENOMEM;
	v->table = attr && attr->type == FI_AV_TABLE;
	if (attr && attr->type == FI_AV_UNSPEC)
		attr->type = FI_AV_MAP;
	v->fid = (struct fid_av){.fid = {FI_CLASS_AV, context, &av_fid_ops}, .ops = &av_ops};
	*out = &v->fid;
	return 0;
}
