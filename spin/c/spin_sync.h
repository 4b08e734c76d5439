/* spin_sync.h: what handlers that run at the same time need to share HPU memory: atomics of 32 bits and locks.
 *
 * All of these may suspend the handler. Nobody should keep a lock for long: who waits uses up its budget.
 */
#ifndef SPIN_SYNC_H
#define SPIN_SYNC_H

#include <spin.h>

/* Atomics on 4 aligned bytes of HPU memory; each returns the value before. */
static inline uint32_t spin_swap32(volatile uint32_t *at, uint32_t value)
{
	return (uint32_t)spin_atomic32(SPIN_SWAP32, at, value, 0);
}

/* Stores swap if *at is compare: then it returns compare. */
static inline uint32_t spin_cswap32(volatile uint32_t *at, uint32_t compare, uint32_t swap)
{
	return (uint32_t)spin_atomic32(SPIN_CSWAP32, at, swap, compare);
}

static inline uint32_t spin_add32(volatile uint32_t *at, uint32_t value)
{
	return (uint32_t)spin_atomic32(SPIN_ADD32, at, value, 0);
}

static inline uint32_t spin_and32(volatile uint32_t *at, uint32_t value)
{
	return (uint32_t)spin_atomic32(SPIN_AND32, at, value, 0);
}

static inline uint32_t spin_or32(volatile uint32_t *at, uint32_t value)
{
	return (uint32_t)spin_atomic32(SPIN_OR32, at, value, 0);
}

static inline uint32_t spin_xor32(volatile uint32_t *at, uint32_t value)
{
	return (uint32_t)spin_atomic32(SPIN_XOR32, at, value, 0);
}

/* A lock is 0 while nobody has it. */
static inline int spin_trylock(volatile uint32_t *lock)
{
	return spin_swap32(lock, 1) == 0;
}

static inline void spin_lock(volatile uint32_t *lock)
{
	while (!spin_trylock(lock))
		spin_yield();
}

static inline void spin_unlock(volatile uint32_t *lock)
{
	spin_swap32(lock, 0);
}

/* A lock of many readers or one writer is 0 while nobody has it; else the number of readers, or SPIN_WRITER. A writer waits until there
 * is no reader: many readers may keep it waiting. */
enum { SPIN_WRITER = 0x40000000 };

static inline void spin_read_lock(volatile uint32_t *lock)
{
	for (;;) {
		uint32_t readers = *lock;
		if (readers < SPIN_WRITER && spin_cswap32(lock, readers, readers + 1) == readers)
			return;
		spin_yield();
	}
}

static inline void spin_read_unlock(volatile uint32_t *lock)
{
	spin_add32(lock, (uint32_t)-1);
}

static inline void spin_write_lock(volatile uint32_t *lock)
{
	while (spin_cswap32(lock, 0, SPIN_WRITER) != 0)
		spin_yield();
}

static inline void spin_write_unlock(volatile uint32_t *lock)
{
	spin_swap32(lock, 0);
}

#endif
