/* Files that several threads write, each its own under another name, rename, and read and list
 * those of its neighbour. In rounds, until a file is there; then once more, with contents that are
 * the same whatever the number of rounds was.
 *
 * Arguments: those of the file system (files.h), and that FILE. Its last line of output is what it
 * has done. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "files.h"

enum { THREADS = 4, FILES = 8, SIZE_MAX_BYTES = 40000 };

static int argument_count;
static char **all_arguments;
static pthread_barrier_t barrier;
static int is_last;
static unsigned long rounds, bytes_read, names_listed;

/* Of the directory that is listed. */
static _Thread_local unsigned seen;

void fail(const char *what, const char *name, int error)
{
    fprintf(stderr, "%s of %s: %s\n", what, name, error ? strerror(error) : "not as it should be");
    exit(1);
}

/* What is in a file follows from whose it is, which of them, and the round. */
static size_t contents(char *to, unsigned thread, unsigned file, unsigned long round)
{
    unsigned state = (unsigned)round * 977 + thread * 131 + file * 17 + 1;
    size_t size = 1 + state * 2654435761u % SIZE_MAX_BYTES;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = (char)(state >> 24);
    }
    return size;
}

static void write_one(unsigned thread, unsigned file, unsigned long round)
{
    char data[SIZE_MAX_BYTES], from[64], to[64];
    size_t size = contents(data, thread, file, round);
    snprintf(from, sizeof from, "/of-%u/new-%u", thread, file);
    snprintf(to, sizeof to, "/of-%u/file-%u", thread, file);
    write_file(from, data, size);
    rename_file(from, to);
}

static void check_one(unsigned thread, unsigned file, unsigned long round)
{
    char wanted[SIZE_MAX_BYTES], data[SIZE_MAX_BYTES + 1], name[64];
    size_t size = contents(wanted, thread, file, round), is;
    snprintf(name, sizeof name, "/of-%u/file-%u", thread, file);
    is = read_file(name, data, sizeof data);
    if (is != size || memcmp(data, wanted, size))
        fail("contents", name, 0);
    __atomic_add_fetch(&bytes_read, is, __ATOMIC_RELAXED);
}

static void check_name(const char *name)
{
    unsigned file;
    int end = 0;
    if (sscanf(name, "file-%u%n", &file, &end) != 1 || name[end] || file >= FILES ||
        (seen & 1u << file))
        fail("name", name, 0);
    seen |= 1u << file;
    __atomic_add_fetch(&names_listed, 1, __ATOMIC_RELAXED);
}

/* All files are there under their last name, each once, and nothing else is. */
static void check_list(unsigned thread)
{
    char name[64];
    snprintf(name, sizeof name, "/of-%u", thread);
    seen = 0;
    list(name, check_name);
    if (seen != (1u << FILES) - 1)
        fail("list", name, 0);
}

static void round_of(unsigned thread, unsigned long round)
{
    unsigned neighbour = (thread + 1) % THREADS;
    for (unsigned file = 0; file < FILES; file++)
        write_one(thread, file, round);
    pthread_barrier_wait(&barrier);
    for (unsigned file = 0; file < FILES; file++)
        check_one(neighbour, file, round);
    check_list(neighbour);
}

static void *work(void *argument)
{
    unsigned thread = (unsigned)(size_t)argument;
    const char *enough = all_arguments[argument_count];
    char name[64];
    reach(thread, argument_count, all_arguments);
    snprintf(name, sizeof name, "/of-%u", thread);
    make_directory(name);
    for (unsigned long round = 1;; round++) {
        round_of(thread, round);
        /* One of them decides for all; the barrier is what makes the others see it. */
        if (thread == 0) {
            rounds = round + 1;
            is_last = access(enough, F_OK) == 0;
        }
        pthread_barrier_wait(&barrier);
        if (is_last)
            break;
    }
    round_of(thread, 0);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    if (count < 2) {
        fprintf(stderr, "usage: %s ARGUMENT... FILE\n", arguments[0]);
        return 2;
    }
    argument_count = count - 2;
    all_arguments = arguments + 1;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            fail("start", "a thread", 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%lu rounds, %lu files written and renamed, %lu bytes read, %lu names listed\n", rounds,
           rounds * THREADS * FILES, bytes_read, names_listed);
    return 0;
}
