/*
 * old_glibc.h - what goes into other people's programs needs no symbol that is newer than GLIBC_2.17, so that it loads
 * into containers of older systems: where one symbol is missing no program starts at all, /bin/true included.
 *
 * The build puts it before every file of those libraries (-include), where the C library is glibc. Newer versions of
 * glibc gave these functions a new name for their place (libpthread and libdl are libc since 2.34), or made them
 * functions at all (fstat was inline before 2.33); what they do is the same. In older ones they are in libraries of
 * their own, which the link names.
 */
#ifndef LOADLINE_BASE_OLD_GLIBC_H
#define LOADLINE_BASE_OLD_GLIBC_H
#ifndef __ASSEMBLER__

#include <sys/stat.h>

#if defined __x86_64__
#define LL_OLD_GLIBC "GLIBC_2.2.5"
#define LL_OLD_GLIBC_3 "GLIBC_2.3.3"
#define LL_OLD_GLIBC_12 "GLIBC_2.12"
enum { LL_OLD_GLIBC_STAT = 1 };
#elif defined __aarch64__
#define LL_OLD_GLIBC "GLIBC_2.17"
#define LL_OLD_GLIBC_3 "GLIBC_2.17"
#define LL_OLD_GLIBC_12 "GLIBC_2.17"
enum { LL_OLD_GLIBC_STAT = 0 };
#else
#error "which was the first glibc of this machine?"
#endif

#define LL_OLD(symbol, name, version) __asm__(".symver " #symbol "," #name "@" version);

LL_OLD(dlclose, dlclose, LL_OLD_GLIBC)
LL_OLD(dlopen, dlopen, LL_OLD_GLIBC)
#ifdef LL_OLD_DLSYM /* the preloaded library has a dlsym of its own */
LL_OLD(dlerror, dlerror, LL_OLD_GLIBC)
LL_OLD(dlsym, dlsym, LL_OLD_GLIBC)
#endif
LL_OLD(fcntl64, fcntl, LL_OLD_GLIBC) /* the same, where off_t has 64 bits */
LL_OLD(pthread_attr_setstacksize, pthread_attr_setstacksize, LL_OLD_GLIBC)
LL_OLD(pthread_condattr_setclock, pthread_condattr_setclock, LL_OLD_GLIBC_3)
LL_OLD(pthread_create, pthread_create, LL_OLD_GLIBC)
LL_OLD(pthread_key_create, pthread_key_create, LL_OLD_GLIBC)
LL_OLD(pthread_mutex_timedlock, pthread_mutex_timedlock, LL_OLD_GLIBC)
LL_OLD(pthread_mutex_trylock, pthread_mutex_trylock, LL_OLD_GLIBC)
LL_OLD(pthread_mutexattr_destroy, pthread_mutexattr_destroy, LL_OLD_GLIBC)
LL_OLD(pthread_mutexattr_init, pthread_mutexattr_init, LL_OLD_GLIBC)
LL_OLD(pthread_mutexattr_settype, pthread_mutexattr_settype, LL_OLD_GLIBC)
LL_OLD(pthread_once, pthread_once, LL_OLD_GLIBC)
LL_OLD(pthread_setspecific, pthread_setspecific, LL_OLD_GLIBC)
LL_OLD(pthread_setname_np, pthread_setname_np, LL_OLD_GLIBC_12)
LL_OLD(pthread_sigmask, pthread_sigmask, LL_OLD_GLIBC)
LL_OLD(pthread_join, pthread_join, LL_OLD_GLIBC)

/* glibc's own names for them, of all its versions. struct stat is struct stat64 on these machines. */
int __fxstat64(int version, int fd, struct stat64 *ret_stat);
int __xstat64(int version, const char *path, struct stat64 *ret_stat);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *ret_stat, int flags);
#define fstat(fd, ret) __fxstat64(LL_OLD_GLIBC_STAT, fd, (struct stat64 *)(ret))
#define stat(path, ret) __xstat64(LL_OLD_GLIBC_STAT, path, (struct stat64 *)(ret))
#define fstatat(folder, path, ret, flags) __fxstatat64(LL_OLD_GLIBC_STAT, folder, path, (struct stat64 *)(ret), flags)

#endif
#endif
