/*
 * A stand-in for the kernel's device mapper, put in front of libdevmapper by LD_PRELOAD: it has a
 * target `multipath` and not one device. So multipathd runs where the kernel has no device mapper,
 * and where it has one, does nothing to it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What libdevmapper hands out, of which an empty list and a list of one are needed. */
struct names {
    uint64_t device;
    uint32_t next;
    char name[4];
};

struct versions {
    uint32_t next;
    uint32_t version[3];
    char name[16];
};

/* Before the kernel could say that something has happened to a device: nobody polls for it. */
static const char kernel_version[] = "4.30.0";

int dm_task_run(void *task)
{
    (void)task;
    return 1;
}

void *dm_task_get_names(void *task)
{
    static struct names none;

    (void)task;
    return &none;
}

void *dm_task_get_versions(void *task)
{
    static struct versions multipath = {0, {1, 14, 0}, "multipath"};

    (void)task;
    return &multipath;
}

int dm_task_get_driver_version(void *task, char *to, size_t size)
{
    (void)task;
    return snprintf(to, size, "%s", kernel_version) > 0;
}

int dm_driver_version(char *to, size_t size)
{
    return snprintf(to, size, "%s", kernel_version) > 0;
}
