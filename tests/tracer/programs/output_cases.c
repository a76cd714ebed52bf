/* output_cases.c - one checkpoint, many files: each written in its own way. */
#include "cases.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define ARRAY(name) static unsigned char name[BYTES] = {1}

ARRAY(plain);
static void case_plain(void)
{
    int fd = create(route("ck/plain"));
    write_all(fd, plain, 100);
    write_all(fd, plain + 100, 156);
    close(fd);
}

ARRAY(swapped); /* second half first */
static void case_pwrite(void)
{
    int fd = create(route("ck/pwrite"));
    MUST(pwrite(fd, swapped, 128, 128) == 128);
    MUST(pwrite(fd, swapped + 128, 128, 0) == 128);
    close(fd);
}

ARRAY(vectored);
static void case_writev(void)
{
    struct iovec parts[2] = {{vectored + 50, 206}, {vectored, 50}};
    int fd = create(route("ck/writev"));
    MUST(writev(fd, parts, 2) == BYTES);
    close(fd);
}

ARRAY(after_gap); /* a gap of 10 bytes */
static void case_pwritev(void)
{
    struct iovec parts[2] = {{after_gap, 128}, {after_gap + 128, 128}};
    int fd = create(route("ck/pwritev"));
    MUST(pwritev(fd, parts, 2, 10) == BYTES);
    close(fd);
}

ARRAY(version2);
static void case_pwritev2(void)
{
    struct iovec first = {version2, 20}, second = {version2 + 20, 100},
                 third = {version2 + 120, 136};
    int fd = create(route("ck/pwritev2"));
    MUST(pwritev2(fd, &first, 1, -1, 0) == 20);          /* at the file's position */
    MUST(pwritev2(fd, &second, 1, 20, 0) == 100);        /* there */
    MUST(pwritev2(fd, &third, 1, 0, RWF_APPEND) == 136); /* at the end */
    close(fd);
}

ARRAY(appended);
static void case_append(void)
{
    const char *path = route("ck/append");
    int fd = create(path);
    write_all(fd, appended, 50);
    close(fd);
    fd = open(path, O_WRONLY | O_APPEND);
    write_all(fd, appended + 50, 50);
    MUST(lseek(fd, 0, SEEK_SET) == 0);
    write_all(fd, appended + 100, 50);
    MUST(pwrite(fd, appended + 150, 106, 0) == 106); /* Linux appends this, too */
    close(fd);
}

ARRAY(moved_about);
static void case_dup_lseek(void)
{
    int fd = create(route("ck/dup"));
    int other = dup(fd);
    write_all(fd, moved_about, 10);
    MUST(lseek(other, 128, SEEK_SET) == 128);
    write_all(fd, moved_about + 128, 128);
    close(fd);
    MUST(lseek(other, 10, SEEK_SET) == 10);
    write_all(other, moved_about + 10, 118);
    close(other);
}

ARRAY(shortened);
ARRAY(thrown_away);
static void case_ftruncate(void)
{
    int fd = create(route("ck/ftruncate"));
    write_all(fd, thrown_away, BYTES);
    MUST(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    write_all(fd, shortened, BYTES);
    MUST(ftruncate(fd, 150) == 0 &&
         ftruncate(fd, 160) == 0); /* the last 10 are zeros by no write */
    close(fd);
}

ARRAY(rewritten);
ARRAY(first_try);
static void case_o_trunc(void)
{
    const char *path = route("ck/o_trunc");
    int fd = create(path);
    write_all(fd, first_try, BYTES);
    close(fd);
    fd = create(path);
    write_all(fd, rewritten, 200);
    close(fd);
    MUST(truncate(path, 190) == 0);
}

ARRAY(under); /* last write wins */
ARRAY(over);
static void case_overwritten(void)
{
    int fd = create(route("ck/overwritten"));
    write_all(fd, under, BYTES);
    MUST(pwrite(fd, over + 90, 40, 90) == 40);
    close(fd);
}

ARRAY(renamed);
static void case_rename(void)
{
    const char *path = route("ck/renamed");
    char temporary[SCR_MAX_FILENAME + 8];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    int fd = create(temporary);
    write_all(fd, renamed, BYTES);
    close(fd);
    MUST(rename(temporary, path) == 0);
}

ARRAY(linked);
static void case_links(void)
{
    const char *path = route("ck/linked");
    char other[SCR_MAX_FILENAME + 8];
    snprintf(other, sizeof other, "%s.other", path);
    int fd = create(other);
    write_all(fd, linked, BYTES);
    close(fd);
    MUST(symlink(other, path) == 0);
}

ARRAY(in_sibling); /* the second half also goes to a file that nobody routed */
static void case_sibling(void)
{
    const char *path = route("ck/beside");
    char other[SCR_MAX_FILENAME + 8];
    snprintf(other, sizeof other, "%s.log", path);
    int fd = create(path);
    write_all(fd, in_sibling, BYTES);
    close(fd);
    fd = create(other);
    write_all(fd, in_sibling + 128, 128);
    close(fd);
}

ARRAY(copied);
static void case_copies(void)
{
    const char *from = route("ck/copied"), *by_sendfile = route("ck/sendfile"),
               *by_range = route("ck/copy_file_range");
    int in = create(from), out = create(by_sendfile);
    off_t start_at = 16;
    write_all(in, copied, BYTES);
    MUST(sendfile(out, in, &start_at, 200) == 200);
    close(out);
    out = create(by_range);
    loff_t in_at = 100, out_at = 4;
    MUST(copy_file_range(in, &in_at, out, &out_at, 100, 0) == 100);
    close(out);
    close(in);
}

static void case_unseen(void)
{
    int in = open("/proc/self/exe", O_RDONLY), out = create(route("ck/unseen"));
    MUST(sendfile(out, in, NULL, 64) == 64);
    close(out);
    close(in);
}

ARRAY(mapped);
ARRAY(kept_mapped);
static unsigned char *still_mapped;
static void case_mmap(void)
{
    int fd = create(route("ck/mapped"));
    MUST(ftruncate(fd, BYTES + 44) == 0);
    unsigned char *file = mmap(NULL, BYTES + 44, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memcpy(file, mapped, BYTES); /* the last 44 bytes are written by nobody */
    MUST(munmap(file, BYTES + 44) == 0);
    close(fd);

    fd = create(route("ck/kept_mapped"));
    MUST(ftruncate(fd, BYTES) == 0);
    still_mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memcpy(still_mapped, kept_mapped, BYTES);
    MUST(msync(still_mapped, BYTES, MS_SYNC) == 0);
    close(fd);
}

ARRAY(punched);
static void case_punch(void)
{
    int fd = create(route("ck/punched"));
    write_all(fd, punched, BYTES);
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 64, 64) != 0)
        printf("no punch\n");
    close(fd);
}

ARRAY(buffered);
static void case_stdio(void)
{
    FILE *file = fopen(route("ck/stdio"), "w");
    MUST(file);
    for (int i = 0; i < 60; i += 3)
        MUST(fwrite(buffered + i, 1, 3, file) == 3);
    for (int i = 60; i < 70; i++)
        fputc(buffered[i], file);
    MUST(fwrite(buffered + 70, 1, 186, file) == 186);
    fclose(file);
}

ARRAY(packed);
static void case_packed(void)
{
    unsigned char *staging = malloc(BYTES);
    for (int i = 0; i < BYTES; i++)
        staging[i] = packed[BYTES - 1 - i];
    int fd = create(route("ck/packed"));
    write_all(fd, staging, BYTES);
    close(fd);
    free(staging);
}

ARRAY(staged);
ARRAY(staged_again);
static unsigned char staging_left[BYTES], staging_reused[BYTES];
static void case_staged(void)
{
    int fd = create(route("ck/staging_left"));
    memcpy(staging_left, staged, BYTES);
    write_all(fd, staging_left, BYTES);
    close(fd);
    fd = create(route("ck/staging_reused"));
    memcpy(staging_reused, staged_again, BYTES);
    write_all(fd, staging_reused, BYTES);
    close(fd);
}

ARRAY(sieved);
static void case_sieved(void)
{
    /* Reads a stretch, sets some of it, writes all of it: the rest is as before. */
    unsigned char stretch[BYTES];
    const char *path = route("ck/sieved");
    int fd = open(path, O_RDWR);
    MUST(fd >= 0 && pread(fd, stretch, BYTES, 0) == BYTES);
    memcpy(stretch + 100, sieved + 100, 50);
    MUST(pwrite(fd, stretch, BYTES, 0) == BYTES);
    MUST(pwrite(fd, stretch, 20, 10) == 20); /* elsewhere: unknown */
    write_bytes(stretch, 0, BYTES); /* else a copy may last, where the stack is not used again */
    close(fd);
}
/* Before the bracket. */
static void make_sieved(void)
{
    const char *prefix = getenv("SCR_PREFIX");
    char path[SCR_MAX_FILENAME];
    snprintf(path, sizeof path, "%s/ck", prefix);
    MUST(mkdir(path, 0700) == 0);
    strcat(path, "/sieved");
    int fd = create(path);
    write_all(fd, sieved, BYTES);
    close(fd);
}

ARRAY(in_fresh);
static void case_fresh(void)
{
    /* Zeros that the kernel made are values, too; nothing in the program holds them afterwards. */
    int fd = create(route("ck/fresh"));
    unsigned char *pages =
        mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(pages != MAP_FAILED);
    memcpy(pages + 56, in_fresh, 200);
    write_all(fd, pages, BYTES);
    MUST(munmap(pages, 1 << 16) == 0);
    close(fd);
    fd = create(route("ck/zeroed"));
    pages = calloc(1, BYTES);
    MUST(pages);
    memcpy(pages + 56, in_fresh, 200);
    write_all(fd, pages, BYTES);
    free(pages);
    close(fd);
}

static unsigned char *grown, *given_back, *freed_later, *grown_later, *to_nothing;
static unsigned char *mapping, *remapped, *shared;
static void case_heap(void)
{
    int fd = create(route("ck/grown"));
    grown = realloc(grown, 100000); /* moves */
    MUST(grown);
    write_all(fd, grown, BYTES);
    close(fd);
    fd = create(route("ck/given_back"));
    write_all(fd, given_back, BYTES);
    close(fd);
    free(given_back);
    fd = create(route("ck/freed_later"));
    write_all(fd, freed_later, BYTES);
    close(fd);
    fd = create(route("ck/grown_later"));
    write_all(fd, grown_later, BYTES);
    close(fd);
    fd = create(route("ck/to_nothing"));
    write_all(fd, to_nothing, BYTES);
    close(fd);
    fd = create(route("ck/mapping"));
    write_all(fd, mapping, BYTES);
    close(fd);
    fd = create(route("ck/remapped"));
    write_all(fd, remapped, BYTES);
    close(fd);
    fd = create(route("ck/shared"));
    write_all(fd, shared, BYTES);
    close(fd);
}

ARRAY(threaded);
static int threaded_fd;
static void *write_half(void *half)
{
    long offset = 128 * (long)half;
    for (int i = 0; i < 128; i += 16)
        MUST(pwrite(threaded_fd, threaded + offset + i, 16, offset + i) == 16);
    return NULL;
}
static void case_threads(void)
{
    pthread_t threads[2];
    threaded_fd = create(route("ck/threads"));
    for (long half = 0; half < 2; half++)
        MUST(pthread_create(&threads[half], NULL, write_half, (void *)half) == 0);
    for (int half = 0; half < 2; half++)
        MUST(pthread_join(threads[half], NULL) == 0);
    close(threaded_fd);
}

ARRAY(summed);
ARRAY(computed);
static void case_used(void)
{
    static unsigned char result[BYTES];
    unsigned sum = 0;
    int fd = create(route("ck/summed"));
    write_all(fd, summed, BYTES);
    close(fd);
    for (int i = 150; i < BYTES; i++)
        sum += summed[i];
    read_here = (unsigned char)sum;
    fd = create(route("ck/computed"));
    for (int i = 0; i < 64; i++)
        result[i] = (unsigned char)(computed[i] + 1);
    memcpy(result + 64, computed + 64, 192);
    write_all(fd, result, BYTES);
    close(fd);
}

ARRAY(read_again);
static void case_read_back(void)
{
    static unsigned char back[BYTES];
    int fd = create(route("ck/read_again"));
    write_all(fd, read_again, BYTES);
    MUST(pread(fd, back, 240, 16) == 240);
    close(fd);
    fd = create(route("ck/from_back"));
    write_all(fd, back, 240);
    close(fd);
    memset(back, 0, sizeof back);
}

ARRAY(relative);
static void case_openat(void)
{
    char folder[SCR_MAX_FILENAME];
    strcpy(folder, route("ck/relative"));
    *strrchr(folder, '/') = 0;
    int dir = open(folder, O_RDONLY | O_DIRECTORY);
    int fd = openat(dir, "relative", O_WRONLY | O_CREAT, 0600);
    MUST(fd >= 0);
    write_all(fd, relative, BYTES);
    close(fd);
    close(dir);
}

ARRAY(partial);
static void case_pipe(void)
{
    /* More than a pipe holds, without waiting: only what was accepted would count, and a pipe is no
     * file: what it is given is used. */
    int ends[2];
    MUST(pipe(ends) == 0);
    write_all(ends[1], partial + 200, 56);
    close(ends[0]);
    close(ends[1]);
    int fd = create(route("ck/piped"));
    write_all(fd, partial, BYTES);
    close(fd);
}

/* What a buffer held that was given away and overwritten before the bracket's end. */
ARRAY(through_socket);
ARRAY(through_device);
static void case_given_away(void)
{
    static unsigned char buffer[BYTES];
    int ends[2], device = open("/dev/null", O_WRONLY);
    MUST(device >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    memcpy(buffer, through_socket + 200, 56);
    MUST(send(ends[0], buffer, 50, 0) == 50);
    memcpy(buffer, through_device + 200, 56);
    write_all(device, buffer, 50);
    memset(buffer, 0, BYTES);
    close(device);
    close(ends[0]);
    close(ends[1]);
    int fd = create(route("ck/socket"));
    write_all(fd, through_socket, BYTES);
    close(fd);
    fd = create(route("ck/device"));
    write_all(fd, through_device, BYTES);
    close(fd);
}

/* For the compiler: a store that is overwritten later is a store nevertheless. */
#define OTHERS_LOOK __asm__ volatile("" ::: "memory")

/* Likewise in memory that other processes see; and in a checkpoint's file that is mapped. */
ARRAY(through_memory);
ARRAY(through_segment);
ARRAY(mapped_twice);
static unsigned char *segment;
static void case_shown(void)
{
    static unsigned char none[BYTES];
    char other[SCR_MAX_FILENAME + 8];
    const char *path = route("ck/segment");
    snprintf(other, sizeof other, "%s.segment", path);
    int fd = create(other);
    MUST(ftruncate(fd, BYTES) == 0);
    unsigned char *file = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(file != MAP_FAILED);
    close(fd);
    memcpy(segment + 8, through_memory + 200, 50);
    memcpy(file, through_segment + 200, 50);
    OTHERS_LOOK;
    memset(segment, 0, BYTES);
    memset(file, 0, BYTES);
    MUST(munmap(file, BYTES) == 0);
    fd = create(path);
    write_all(fd, through_segment, BYTES);
    close(fd);
    fd = create(route("ck/memory"));
    write_all(fd, through_memory, BYTES);
    close(fd);
    fd = create(route("ck/mapped_twice"));
    MUST(ftruncate(fd, BYTES) == 0);
    file = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(file != MAP_FAILED);
    memcpy(file, mapped_twice, BYTES); /* nobody reads it there: it is the file */
    OTHERS_LOOK;
    memcpy(file, none, BYTES);
    OTHERS_LOOK;
    memcpy(file, mapped_twice, BYTES);
    MUST(munmap(file, BYTES) == 0);
    close(fd);
}

/* This process stands for another one, too. */
ARRAY(vm_given);
ARRAY(vm_taken);
static void case_process_vm(void)
{
    static unsigned char others[BYTES];
    struct iovec local = {vm_given + 200, 50}, remote = {others, 50};
    if (process_vm_writev(getpid(), &local, 1, &remote, 1, 0) != 50)
        printf("no process_vm_writev\n");
    local.iov_base = vm_taken + 200;
    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 50)
        printf("no process_vm_readv\n");
    int fd = create(route("ck/vm_given"));
    write_all(fd, vm_given, BYTES);
    close(fd);
    fd = create(route("ck/vm_taken"));
    write_all(fd, vm_taken, BYTES);
    close(fd);
}

/* A signal strikes while a register holds eight bytes of the state, and is handled. */
ARRAY(held);
ARRAY(held_out);
static volatile sig_atomic_t handled;
static void handle(int number)
{
    (void)number;
    handled++;
}
static uint64_t kept_over_a_signal(const void *from)
{
#if defined(__x86_64__)
    register uint64_t value __asm__("r12") = *(const volatile uint64_t *)from;
    long result = SYS_tgkill;
    __asm__ volatile("syscall" /* the signal comes as it returns */
                     : "+a"(result), "+r"(value)
                     : "D"((long)getpid()), "S"(syscall(SYS_gettid)), "d"((long)SIGUSR1)
                     : "rcx", "r11", "memory");
#else
    uint64_t value = *(const volatile uint64_t *)from;
    raise(SIGUSR1);
#endif
    return value;
}
static void case_signal(void)
{
    struct sigaction action = {.sa_handler = handle};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    /* What other registers still hold counts as used, too: let that be nothing of a case. */
    static unsigned char none[BYTES];
    memcpy(held_out, none, BYTES);
    OTHERS_LOOK;
    uint64_t value = kept_over_a_signal(held + 200);
    MUST(handled == 1);
    memcpy(held_out, held, BYTES);
    memcpy(held_out + 200, &value, 8);
    int fd = create(route("ck/signal"));
    write_all(fd, held_out, BYTES);
    close(fd);
    fd = create(route("ck/held"));
    write_all(fd, held, BYTES);
    close(fd);
}

static void *anonymous(int flags)
{
    void *memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    MUST(memory != MAP_FAILED);
    memset(memory, 1, 1 << 16);
    return memory;
}

static unsigned char *block(void)
{
    unsigned char *memory = malloc(BYTES);
    MUST(memory);
    memset(memory, 1, BYTES);
    return memory;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    grown = block(), given_back = block(), freed_later = block(), grown_later = block();
    to_nothing = block();
    mapping = anonymous(MAP_PRIVATE);
    remapped = anonymous(MAP_PRIVATE);
    shared = anonymous(MAP_SHARED);
    segment = anonymous(MAP_SHARED);
    make_sieved();
    begin_checkpoint("ck");
    case_plain(), case_pwrite(), case_writev(), case_pwritev(), case_pwritev2(), case_append();
    case_dup_lseek(), case_ftruncate(), case_o_trunc(), case_overwritten(), case_rename();
    case_links(), case_sibling(), case_copies(), case_unseen(), case_mmap(), case_punch();
    case_stdio(), case_packed(), case_staged(), case_heap(), case_threads(), case_used();
    case_read_back(), case_openat(), case_pipe(), case_fresh(), case_sieved();
    case_given_away(), case_shown(), case_process_vm(), case_signal();
    complete_checkpoint();

    unsigned char *arrays[] = {
        plain,           swapped,      vectored,       after_gap,      version2,
        appended,        moved_about,  shortened,      rewritten,      under,
        renamed,         linked,       in_sibling,     copied,         mapped,
        kept_mapped,     punched,      buffered,       packed,         staged,
        staged_again,    in_fresh,     sieved,         grown,          freed_later,
        threaded,        summed,       computed,       read_again,     relative,
        partial,         shared,       through_socket, through_device, through_memory,
        through_segment, mapped_twice, vm_given,       vm_taken,       held};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        touch(arrays[i]);
    read_bytes(over, 90, 100);
    write_bytes(held_out, 0, BYTES);
    write_bytes(staging_reused, 0, BYTES);
    free(freed_later);
    grown_later = realloc(grown_later, 100000);
    touch(grown_later);
    touch(to_nothing);
    MUST(realloc(to_nothing, 0) == NULL);
    touch(mapping);
    MUST(munmap(mapping, 1 << 16) == 0);
    write_bytes(remapped, 0, 50);
    MUST(mremap(remapped, 1 << 16, 1 << 24, MREMAP_MAYMOVE) != MAP_FAILED);
    read_bytes(still_mapped, 150, 160);
    finish();
    return 0;
}
