/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A plugin of QEMU 7.2 or later, which counts what the kernel's harts do, as if each had a cache,
 * without a limit, and all were coherent: QEMU emulates none. `cargo xtask kernel` builds and loads
 * it. It counts where QEMU runs one hart at a time, in one thread.
 *
 * The kernel writes to words that mark where counting begins, where a unit of work ends, and where
 * the rest of a row is printed (src/dcache.rs). For a unit that is:
 *
 * - instructions of all harts, with those of the firmware, but not while a hart spins for a lock:
 *   if the hart that holds it has lost its turn, as it may when a timer runs out, others spin for
 *   as long as a turn lasts;
 * - instructions of the hart that had most of them: how long a unit takes if the harts run at once;
 * - the share of that time in which a hart runs, in percent;
 * - lines that a hart fetches from another one's cache: it accesses them for the first time, or
 *   another hart has written to them since. Of the firmware no line counts;
 * - writes to a line that another hart has written to last.
 *
 * Debian packages no header of the interface, so what is used of it is declared here. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef void Block, Instruction;
typedef void Run(unsigned hart, void *data);
typedef void Access(unsigned hart, uint32_t info, uint64_t address, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*)(uint64_t id, Block *));
size_t qemu_plugin_tb_n_insns(const Block *);
Instruction *qemu_plugin_tb_get_insn(const Block *, size_t at);
const void *qemu_plugin_insn_data(const Instruction *);
size_t qemu_plugin_insn_size(const Instruction *);
void qemu_plugin_register_vcpu_tb_exec_cb(Block *, Run *, int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(Instruction *, Access *, int flags, int which, void *data);
bool qemu_plugin_mem_is_store(uint32_t info);
enum { NO_REGISTERS = 0, LOADS_AND_STORES = 3 };
int qemu_plugin_version = 1;

enum { HARTS = 16, LINE = 64, LINES = (126 << 20) / LINE };
static const uint64_t MEMORY = 0x80200000, MARKS = 0x801F0040;
enum { BEGIN, UNIT, END };

/* The harts whose caches have a line, a bit each; and the last that wrote to it, or 0, and 1. */
static struct { uint16_t caches; uint8_t writer; } lines[LINES];

static struct counts { uint64_t instructions[HARTS], fetched, foreign; } now, begun, last;
static uint64_t units, longest;
/* Whether a hart has just executed a block with `pause`. The next one looks at the lock again. */
static bool has_paused[HARTS];
static const uint32_t PAUSE = 0x0100000F;

static void end_unit(void)
{
    uint64_t most = 0;
    for (int hart = 0; hart < HARTS; hart++) {
        uint64_t took = now.instructions[hart] - last.instructions[hart];
        if (took > most)
            most = took;
    }
    longest += most;
    units++;
    last = now;
}

static void print(void)
{
    uint64_t all = 0, harts = 0;
    for (int hart = 0; hart < HARTS; hart++) {
        all += last.instructions[hart] - begun.instructions[hart];
        harts += now.instructions[hart] != 0;
    }
    double each = units;
    printf(" | %.0f | %.0f | %.2f | %.1f | %.1f |\n", all / each, longest / each,
           100.0 * all / ((double)longest * harts), (last.fetched - begun.fetched) / each,
           (last.foreign - begun.foreign) / each);
    fflush(stdout);
}

static void on_access(unsigned hart, uint32_t info, uint64_t address, void *data)
{
    bool writes = qemu_plugin_mem_is_store(info);
    uint64_t at = (address - MEMORY) / LINE, mark = (address - MARKS) / 8;
    if (address >= MEMORY && at < LINES) {
        uint16_t bit = 1 << hart, others = lines[at].caches & ~bit;
        now.fetched += others && !(lines[at].caches & bit);
        lines[at].caches |= bit;
        if (writes) {
            now.foreign += lines[at].writer && lines[at].writer != hart + 1;
            lines[at].caches = bit;
            lines[at].writer = hart + 1;
        }
    } else if (writes && mark == BEGIN) {
        begun = last = now;
        units = longest = 0;
    } else if (writes && mark == UNIT) {
        end_unit();
    } else if (writes && mark == END) {
        print();
    }
}

/* The number of instructions, and whether there is a `pause`. */
static void on_run(unsigned hart, void *data)
{
    uintptr_t count = (uintptr_t)data / 2, pauses = (uintptr_t)data % 2;
    if (!pauses && !has_paused[hart])
        now.instructions[hart] += count;
    has_paused[hart] = pauses;
}

static void on_translation(uint64_t id, Block *block)
{
    size_t count = qemu_plugin_tb_n_insns(block), pauses = 0;
    for (size_t at = 0; at < count; at++) {
        Instruction *one = qemu_plugin_tb_get_insn(block, at);
        pauses |= qemu_plugin_insn_size(one) == sizeof PAUSE
            && memcmp(qemu_plugin_insn_data(one), &PAUSE, sizeof PAUSE) == 0;
        qemu_plugin_register_vcpu_mem_cb(one, on_access, NO_REGISTERS, LOADS_AND_STORES, NULL);
    }
    void *data = (void *)(2 * count + pauses);
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_run, NO_REGISTERS, data);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    return 0;
}
