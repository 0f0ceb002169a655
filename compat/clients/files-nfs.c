/* For files.c: an export of NFSv4, by libnfs. The argument is its URL. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <nfsc/libnfs.h>
#include "files.h"

/* libnfs cannot encode a longer WRITE of version 4 than about 3000 bytes. */
enum { BYTES_AT_A_TIME = 1500 };

/* In the library, and not in its header. By its own choice all connections of a process within a
 * second have one name, and the server takes them for one client. */
void nfs4_set_client_name(struct nfs_context *nfs, const char *name);

static _Thread_local struct nfs_context *nfs;

static void check(int result, const char *what, const char *name)
{
    if (result < 0) {
        fprintf(stderr, "%s\n", nfs_get_error(nfs));
        fail(what, name, -result);
    }
}

void reach(unsigned thread, int count, char **arguments)
{
    struct nfs_url *url;
    char name[32];
    if (count != 1)
        fail("arguments", "an URL", EINVAL);
    nfs = nfs_init_context();
    url = nfs ? nfs_parse_url_dir(nfs, arguments[0]) : NULL;
    if (!url)
        fail("URL", arguments[0], EINVAL);
    snprintf(name, sizeof name, "thread %u", thread);
    nfs4_set_client_name(nfs, name);
    check(nfs_mount(nfs, url->server, url->path), "mount", arguments[0]);
    nfs_destroy_url(url);
}

void make_directory(const char *name)
{
    check(nfs_mkdir2(nfs, name, 0700), "mkdir", name);
}

void write_file(const char *name, const char *data, size_t size)
{
    struct nfsfh *file;
    check(nfs_open2(nfs, name, O_WRONLY | O_CREAT | O_TRUNC, 0600, &file), "creation", name);
    for (size_t done = 0; done < size;) {
        size_t wanted = size - done < BYTES_AT_A_TIME ? size - done : BYTES_AT_A_TIME;
        int count = nfs_pwrite(nfs, file, done, wanted, data + done);
        check(count ? count : -EIO, "write", name);
        done += (size_t)count;
    }
    check(nfs_close(nfs, file), "close", name);
}

void rename_file(const char *from, const char *to)
{
    check(nfs_rename(nfs, from, to), "rename", from);
}

size_t read_file(const char *name, char *to, size_t size)
{
    struct nfsfh *file;
    size_t done = 0;
    int count;
    check(nfs_open(nfs, name, O_RDONLY, &file), "open", name);
    while ((count = nfs_pread(nfs, file, done, size - done, to + done)) > 0)
        done += (size_t)count;
    check(count, "read", name);
    check(nfs_close(nfs, file), "close", name);
    return done;
}

void list(const char *directory, void (*each)(const char *name))
{
    struct nfsdir *all;
    struct nfsdirent *next;
    check(nfs_opendir(nfs, directory, &all), "opendir", directory);
    while ((next = nfs_readdir(nfs, all)))
        if (strcmp(next->name, ".") && strcmp(next->name, ".."))
            each(next->name);
    nfs_closedir(nfs, all);
}
