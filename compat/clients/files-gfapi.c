/* For files.c: a volume of gluster, by gfapi. The arguments are a host and the volume's name. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <glusterfs/api/glfs.h>
#include "files.h"

static glfs_t *volume;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

/* One connection, which all threads use. */
void reach(unsigned thread, int count, char **arguments)
{
    (void)thread;
    if (count != 2)
        fail("arguments", "a host and a volume", EINVAL);
    pthread_mutex_lock(&one);
    if (!volume) {
        volume = glfs_new(arguments[1]);
        if (!volume || glfs_set_volfile_server(volume, "tcp", arguments[0], 24007) ||
            glfs_set_logging(volume, "/dev/stderr", 4) || glfs_init(volume))
            fail("connection", arguments[1], errno);
        /* Without glfs_fini at the end, which waits for ten seconds. */
    }
    pthread_mutex_unlock(&one);
}

void make_directory(const char *name)
{
    if (glfs_mkdir(volume, name, 0700))
        fail("mkdir", name, errno);
}

void write_file(const char *name, const char *data, size_t size)
{
    glfs_fd_t *file = glfs_creat(volume, name, O_WRONLY | O_TRUNC, 0600);
    if (!file)
        fail("creation", name, errno);
    for (size_t done = 0; done < size;) {
        ssize_t count = glfs_write(file, data + done, size - done, 0);
        if (count <= 0)
            fail("write", name, errno);
        done += (size_t)count;
    }
    if (glfs_close(file))
        fail("close", name, errno);
}

void rename_file(const char *from, const char *to)
{
    if (glfs_rename(volume, from, to))
        fail("rename", from, errno);
}

size_t read_file(const char *name, char *to, size_t size)
{
    size_t done = 0;
    ssize_t count;
    glfs_fd_t *file = glfs_open(volume, name, O_RDONLY);
    if (!file)
        fail("open", name, errno);
    while ((count = glfs_read(file, to + done, size - done, 0)) > 0)
        done += (size_t)count;
    if (count < 0 || glfs_close(file))
        fail("read", name, errno);
    return done;
}

void list(const char *directory, void (*each)(const char *name))
{
    struct dirent entry, *next;
    glfs_fd_t *all = glfs_opendir(volume, directory);
    if (!all)
        fail("opendir", directory, errno);
    for (;;) {
        if (glfs_readdir_r(all, &entry, &next))
            fail("readdir", directory, errno);
        if (!next)
            break;
        if (strcmp(next->d_name, ".") && strcmp(next->d_name, ".."))
            each(next->d_name);
    }
    if (glfs_closedir(all))
        fail("closedir", directory, errno);
}
