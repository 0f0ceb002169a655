/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * That a flavour is one in a process. The shared libraries are, by their names. Of the archives
 * each program, or plug-in, that is linked with one has a copy of its own, and of the core: an
 * updater of one copy would not wait for the readers of another.
 *
 * So each copy has an ELF note, and the initialisation of one looks at those of all objects that
 * are loaded. Notes are found whatever symbols an object exports, and tell people, too, what a
 * program was linked with: `readelf --notes`.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "core.h"

#if defined(SHIM_MEMB)
# define SHIM_NUMBER QUIESCENCE_MEMB
#elif defined(SHIM_MB)
# define SHIM_NUMBER QUIESCENCE_MB
#elif defined(SHIM_QSBR)
# define SHIM_NUMBER QUIESCENCE_QSBR
#elif defined(SHIM_BP)
# define SHIM_NUMBER QUIESCENCE_BP
#elif defined(SHIM_SIGNAL)
# define SHIM_NUMBER QUIESCENCE_SIGNAL
#else
# error "no flavour chosen"
#endif

#if defined(SHIM_ARCHIVE)
# define IN_ARCHIVE 1
#else
# define IN_ARCHIVE 0
#endif

#define OWNER "quiescence"

enum {
	NOTE_OF_A_FLAVOR = 0x100,
};

struct copy {
	uint32_t flavor;
	uint32_t in_archive;
};

struct note {
	ElfW(Nhdr) header;
	char owner[(sizeof(OWNER) + 3) & ~3UL];
	struct copy copy;
};

static const struct note ours __attribute__((section(".note.quiescence"), used, aligned(4))) = {
	.header = {
		.n_namesz = sizeof(OWNER),
		.n_descsz = sizeof(struct copy),
		.n_type = NOTE_OF_A_FLAVOR,
	},
	.owner = OWNER,
	.copy = { .flavor = SHIM_NUMBER, .in_archive = IN_ARCHIVE },
};

static size_t padded(size_t bytes, size_t alignment)
{
	return (bytes + alignment - 1) & ~(alignment - 1);
}

/* A second copy of this flavour among the notes of a segment. Of two shared ones neither is. */
static int is_another_among(const char *notes, size_t bytes, size_t alignment)
{
	while (bytes >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *header = (const ElfW(Nhdr) *)notes;
		const char *owner = notes + sizeof(*header);
		size_t copy = padded(sizeof(*header) + header->n_namesz, alignment);
		size_t end = padded(copy + header->n_descsz, alignment);

		if (end > bytes)
			break;
		if (header != &ours.header && header->n_type == NOTE_OF_A_FLAVOR &&
				header->n_namesz == sizeof(OWNER) && header->n_descsz == sizeof(struct copy) &&
				!memcmp(owner, OWNER, sizeof(OWNER))) {
			const struct copy *found = (const struct copy *)(notes + copy);

			if (found->flavor == SHIM_NUMBER && (IN_ARCHIVE || found->in_archive))
				return 1;
		}
		notes += end;
		bytes -= end;
	}
	return 0;
}

static int look_at_object(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		const char *notes = (const char *)(object->dlpi_addr + segment->p_vaddr);

		if (segment->p_type == PT_NOTE &&
				is_another_among(notes, segment->p_memsz, segment->p_align == 8 ? 8 : 4))
			return 1;
	}
	return 0;
}

/* Before the flavour is attached to its core. */
static void __attribute__((constructor(101))) look_for_copies(void)
{
	if (dl_iterate_phdr(look_at_object, NULL))
		quiescence_urcu_fatal(SHIM_NUMBER, "two copies of this flavour in one process, "
				"one of them from an archive (lib*.a): updaters of one do not wait for "
				"readers of the other; link the program and its plug-ins with the "
				"shared library");
}
