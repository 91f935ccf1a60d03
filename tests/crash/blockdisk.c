/*
 * A disk whose writes and flushes are known: a file system in user space with one file, "disk", for a loop device to lie on.
 * What comes is carried out in IMAGE at once, and put down in LOG in the order in which it comes: u64 kind (1 a write, 2 a flush),
 * u64 at, u64 len, in the host's order, then the bytes of a write. Which of the writes behind a flush a power cut keeps is
 * for whoever reads the log to choose.
 *
 *     blockdisk IMAGE LOG FOLDER     in the foreground, until it is unmounted
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE = 1, FLUSH = 2, MOST = 1 << 20 /* bytes of a request */ };

static int image, logged;

static int put(const void *data, size_t len)
{
    return write(logged, data, len) == (ssize_t)len ? 0 : -EIO;
}

static int put_head(uint64_t kind, uint64_t at, uint64_t len)
{
    const uint64_t head[] = {kind, at, len};

    return put(head, sizeof head);
}

static void *disk_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
    connection->max_write = MOST;
    config->kernel_cache = 1;
    return NULL;
}

static int disk_getattr(const char *path, struct stat *out, struct fuse_file_info *file)
{
    (void)file;
    if (strcmp(path, "/") == 0) {
        *out = (struct stat){.st_mode = S_IFDIR | 0700, .st_nlink = 2};
        return 0;
    }
    if (strcmp(path, "/disk") != 0)
        return -ENOENT;
    if (fstat(image, out))
        return -errno;
    out->st_mode = S_IFREG | 0600;
    return 0;
}

static int disk_open(const char *path, struct fuse_file_info *file)
{
    (void)file;
    return strcmp(path, "/disk") == 0 ? 0 : -ENOENT;
}

static int disk_read(const char *path, char *data, size_t len, off_t at, struct fuse_file_info *file)
{
    ssize_t got = pread(image, data, len, at);

    (void)path;
    (void)file;
    return got < 0 ? -errno : (int)got;
}

static int disk_write(const char *path, const char *data, size_t len, off_t at, struct fuse_file_info *file)
{
    (void)path;
    (void)file;
    if (put_head(WRITE, (uint64_t)at, len) || put(data, len) || pwrite(image, data, len, at) != (ssize_t)len)
        return -EIO;
    return (int)len;
}

static int disk_fsync(const char *path, int data_only, struct fuse_file_info *file)
{
    (void)path;
    (void)data_only;
    (void)file;
    return put_head(FLUSH, 0, 0);
}

static const struct fuse_operations operations = {
    .init = disk_init,
    .getattr = disk_getattr,
    .open = disk_open,
    .read = disk_read,
    .write = disk_write,
    .fsync = disk_fsync,
};

int main(int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    int result;

    if (argc != 4) {
        fputs("blockdisk IMAGE LOG FOLDER\n", stderr);
        return 2;
    }
    image = open(argv[1], O_RDWR | O_CLOEXEC);
    logged = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (image < 0 || logged < 0) {
        perror("blockdisk");
        return 1;
    }
    fuse_opt_add_arg(&args, argv[0]);
    fuse_opt_add_arg(&args, "-f");
    fuse_opt_add_arg(&args, "-s"); /* one request after the other: their order is that of the log */
    fuse_opt_add_arg(&args, argv[3]);
    result = fuse_main(args.argc, args.argv, &operations, NULL);
    fuse_opt_free_args(&args);
    return result;
}
