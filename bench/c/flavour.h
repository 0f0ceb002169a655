/*
 * The loops of the benchmark, in terms of the names that every liburcu flavour maps to its own.
 *
 * Included once by the file of each flavour, which has included that flavour's header with its
 * inlined readers and defines NAME(x). A whole loop runs per call, so that calling C from Rust
 * costs nothing that counts. For memb and bp, announcements are empty.
 */
#include <stdint.h>
#include <urcu/uatomic.h>

/* As on the Rust side: sections between two announcements of a quiescent state. */
#define BATCH 1024

static void NAME(register)(void) { rcu_register_thread(); }
static void NAME(unregister)(void) { rcu_unregister_thread(); }
static void NAME(offline)(void) { rcu_thread_offline(); }
static void NAME(synchronize)(void) { synchronize_rcu(); }

static inline uint64_t NAME(batch)(uint64_t **slot)
{
	uint64_t sum = 0;

	for (int i = 0; i < BATCH; i++) {
		rcu_read_lock();
		sum += *rcu_dereference(*slot);
		rcu_read_unlock();
	}
	return sum;
}

/* `batches` times BATCH sections: enter, load the pointer, read its word, leave. */
static uint64_t NAME(read)(uint64_t batches, uint64_t **slot)
{
	uint64_t sum = 0;

	for (uint64_t batch = 0; batch < batches; batch++) {
		sum += NAME(batch)(slot);
		rcu_quiescent_state();
	}
	return sum;
}

/* The same inside another section. */
static uint64_t NAME(read_nested)(uint64_t batches, uint64_t **slot)
{
	uint64_t sum = 0;

	rcu_read_lock();
	for (uint64_t batch = 0; batch < batches; batch++)
		sum += NAME(batch)(slot);
	rcu_read_unlock();
	return sum;
}

/* Sections of `steps` dependent steps each until told to stop; how many there were. */
static uint64_t NAME(read_until)(const int32_t *stop, uint32_t steps, uint64_t *chain)
{
	uint64_t sections = 0;
	uint64_t x = *chain;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		rcu_read_lock();
		for (uint32_t i = 0; i < steps; i++)
			x = (x ^ (x >> 32)) * 6364136223846793005ULL;
		/* The section must not be moved out of itself. */
		__asm__ __volatile__("" : "+r"(x));
		rcu_read_unlock();
		rcu_quiescent_state();
		sections++;
	}
	*chain = x;
	return sections;
}

/* As on the Rust side. */
struct flavour {
	void (*begin)(void);
	void (*end)(void);
	void (*offline)(void);
	void (*synchronize)(void);
	uint64_t (*read)(uint64_t batches, uint64_t **slot);
	uint64_t (*read_nested)(uint64_t batches, uint64_t **slot);
	uint64_t (*read_until)(const int32_t *stop, uint32_t steps, uint64_t *chain);
};

const struct flavour NAME(flavour) = {
	NAME(register), NAME(unregister), NAME(offline), NAME(synchronize),
	NAME(read), NAME(read_nested), NAME(read_until),
};
