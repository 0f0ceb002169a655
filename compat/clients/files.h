/* What files.c asks of a file system that is reached without the kernel: files-gfapi.c of a volume
 * of gluster, files-nfs.c of an export of NFS. Errors end the program, by fail(). */
#ifndef FILES_H
#define FILES_H

#include <stddef.h>

/* Says what did not work, of which name, and why; `error` is an errno, or 0. */
void fail(const char *what, const char *name, int error) __attribute__((noreturn));

/* Of each thread, whose number that is, before anything else. COUNT ARGUMENTS are those of the
 * program but for the last one. */
void reach(unsigned thread, int count, char **arguments);

void make_directory(const char *name);

/* A new file, or an old one that is empty afterwards, with that in it. */
void write_file(const char *name, const char *data, size_t size);

/* Takes the place of a file that has the new name. */
void rename_file(const char *from, const char *to);

/* The size of what is in it, or of as much as there is room for. */
size_t read_file(const char *name, char *to, size_t size);

/* Each name once, without . and .. */
void list(const char *directory, void (*each)(const char *name));

#endif
