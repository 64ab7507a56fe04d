#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static vlp_status io_error(const char *doing, const char *path) {
    vlp_status code = errno == ENOENT ? VLP_ERR_NOT_FOUND : VLP_ERR_IO;
    return VLP_FAIL(code, "cannot %s %s: %s", doing, path, strerror(errno));
}

static vlp_status open_regular(const char *path, int *fd, size_t *size) {
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) return io_error("open", path);
    struct stat st;
    vlp_status status = VLP_OK;
    if (fstat(*fd, &st) != 0)
        status = io_error("stat", path);
    else if (!S_ISREG(st.st_mode))
        status = VLP_FAIL(VLP_ERR_IO, "cannot read %s: not a regular file", path);
    if (status != VLP_OK) {
        close(*fd);
        return status;
    }
    *size = (size_t)st.st_size;
    return VLP_OK;
}

static vlp_status read_all(int fd, const char *path, size_t size, vlp_buf *buf) {
    VLP_TRY(vlp_buf_reserve(buf, size));
    size_t got = 0;
    while (got < size) {
        ssize_t n = read(fd, buf->data + buf->len + got, size - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return io_error("read", path);
        if (n == 0) break;
        got += (size_t)n;
    }
    buf->len += got;
    buf->data[buf->len] = '\0';
    return VLP_OK;
}

vlp_status vlp_file_read(const char *path, size_t max_bytes, vlp_buf *buf) {
    int fd;
    size_t size;
    VLP_TRY(open_regular(path, &fd, &size));
    vlp_status status =
        max_bytes && size > max_bytes
            ? VLP_FAIL(VLP_ERR_LIMIT, "%s has %zu bytes; the limit is %zu", path, size, max_bytes)
            : read_all(fd, path, size, buf);
    close(fd);
    return status;
}

vlp_status vlp_map_open(vlp_map *map, const char *path) {
    *map = (vlp_map){0};
    int fd;
    size_t size;
    VLP_TRY(open_regular(path, &fd, &size));
    vlp_status status = VLP_OK;
    if (size > 0) {
        void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = io_error("map", path);
        else
            *map = (vlp_map){data, size, 0};
    }
    close(fd);
    return status;
}

void vlp_map_pass(vlp_map *map, size_t at) {
    enum { STEP = 32 << 20 };
    if (at - map->passed < STEP || at <= map->passed) return;
    size_t upto = at / STEP * STEP;
    madvise((void *)(uintptr_t)(map->data + map->passed), upto - map->passed, MADV_DONTNEED);
    map->passed = upto;
}

void vlp_map_close(vlp_map *map) {
    if (map->data) munmap((void *)(uintptr_t)map->data, map->len);
    *map = (vlp_map){0};
}

void vlp_map_release(const vlp_map *map, const uint8_t *data, size_t len) {
    uintptr_t base = (uintptr_t)map->data, first = (uintptr_t)data;
    if (!map->data || first < base || first >= base + map->len) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = first / page * page;
    madvise((void *)from, first - from + len, MADV_DONTNEED);
}

static void writer_free(vlp_writer *writer) {
    vlp_free(writer->path);
    vlp_free(writer->temporary);
    *writer = (vlp_writer){0};
}

vlp_status vlp_writer_open(vlp_writer *writer, const char *path) {
    *writer = (vlp_writer){0};
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return VLP_FAIL(VLP_ERR_IO, "cannot replace %s: not a regular file", path);
    vlp_buf temporary = {0};
    VLP_TRY(vlp_buf_printf(&temporary, "%s.tmp", path));
    writer->temporary = temporary.data;
    writer->path = vlp_strdup(path);
    if (!writer->path) {
        writer_free(writer);
        return VLP_ERR_MEMORY;
    }
    writer->file = fopen(writer->temporary, "wbe");
    if (!writer->file) {
        vlp_status status = io_error("create", writer->temporary);
        writer_free(writer);
        return status;
    }
    return VLP_OK;
}

vlp_status vlp_writer_write(vlp_writer *writer, const void *data, size_t len) {
    if (len && fwrite(data, 1, len, writer->file) != len)
        return io_error("write", writer->temporary);
    return VLP_OK;
}

vlp_status vlp_writer_rewrite(vlp_writer *writer, int64_t at, const void *data, size_t len) {
    if (fseeko(writer->file, (off_t)at, SEEK_SET) != 0)
        return io_error("seek in", writer->temporary);
    VLP_TRY(vlp_writer_write(writer, data, len));
    return fseeko(writer->file, 0, SEEK_END) == 0 ? VLP_OK : io_error("seek in", writer->temporary);
}

void vlp_writer_abandon(vlp_writer *writer) {
    if (writer->file) fclose(writer->file);
    if (writer->temporary) unlink(writer->temporary);
    writer_free(writer);
}

static void sync_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? vlp_strndup(path, (size_t)(slash - path) + 1) : vlp_strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    vlp_free(folder);
}

vlp_status vlp_writer_commit(vlp_writer *writer) {
    vlp_status status = VLP_OK;
    int ok = fflush(writer->file) == 0 && fsync(fileno((FILE *)writer->file)) == 0;
    if (!ok) status = io_error("write", writer->temporary);
    if (fclose(writer->file) != 0 && status == VLP_OK)
        status = io_error("close", writer->temporary);
    writer->file = NULL;
    if (status == VLP_OK && rename(writer->temporary, writer->path) != 0)
        status = io_error("rename into place", writer->path);
    if (status != VLP_OK) {
        vlp_writer_abandon(writer);
        return status;
    }
    sync_folder_of(writer->path);
    writer_free(writer);
    return VLP_OK;
}

vlp_status vlp_file_write(const char *path, const void *data, size_t len) {
    vlp_writer writer;
    VLP_TRY(vlp_writer_open(&writer, path));
    vlp_status status = vlp_writer_write(&writer, data, len);
    if (status != VLP_OK) {
        vlp_writer_abandon(&writer);
        return status;
    }
    return vlp_writer_commit(&writer);
}

bool vlp_path_exists(const char *path) {
    return access(path, F_OK) == 0;
}

bool vlp_is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool vlp_is_special(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

vlp_status vlp_make_folder(const char *path) {
    char *copy = vlp_strdup(path);
    if (!copy) return VLP_ERR_MEMORY;
    vlp_status status = VLP_OK;
    for (char *p = copy + 1; status == VLP_OK; p++) {
        if (*p != '/' && *p != '\0') continue;
        char saved = *p;
        *p = '\0';
        if (mkdir(copy, 0777) != 0 && !(errno == EEXIST && vlp_is_folder(copy)))
            status = io_error("create folder", copy);
        *p = saved;
        if (saved == '\0') break;
    }
    vlp_free(copy);
    return status;
}

vlp_status vlp_path_join(vlp_buf *buf, const char *folder, const char *name) {
    vlp_buf_clear(buf);
    if (name[0] == '/' || folder[0] == '\0') return vlp_buf_puts(buf, name);
    VLP_TRY(vlp_buf_puts(buf, folder));
    if (buf->data[buf->len - 1] != '/') VLP_TRY(vlp_buf_append(buf, "/", 1));
    return vlp_buf_puts(buf, name);
}

vlp_status vlp_lock_open(int *lock, const char *path) {
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*lock < 0) return io_error("create", path);
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0) return VLP_OK;
    close(*lock);
    *lock = -1;
    return VLP_FAIL(VLP_ERR_IO, "%s is held by another vlp; wait for it, or choose another folder",
                    path);
}

void vlp_lock_close(int lock) {
    if (lock >= 0) close(lock);
}
