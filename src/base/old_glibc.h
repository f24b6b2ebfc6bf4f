/*
 * old_glibc.h - keeps the symbols of our preloaded libraries at GLIBC_2.17, so that they load into containers of older
 * systems. If one symbol of a preloaded library is missing, no program starts at all, not even /bin/true.
 *
 * If the C library is glibc, the build includes this header before every file of those libraries (-include). Newer
 * versions of glibc gave some functions a new symbol version because they moved (libpthread and libdl are parts of libc
 * since 2.34), or because they had been inline (fstat before 2.33). The functions do the same. In older versions they
 * are in libraries of their own, which the link names.
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
LL_OLD(fcntl64, fcntl, LL_OLD_GLIBC) /* the same function, if off_t has 64 bits */
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

/* These names of the functions are in all versions of glibc. struct stat is struct stat64 on these machines. */
int __fxstat64(int version, int fd, struct stat64 *ret_stat);
int __xstat64(int version, const char *path, struct stat64 *ret_stat);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *ret_stat, int flags);
#define fstat(fd, ret) __fxstat64(LL_OLD_GLIBC_STAT, fd, (struct stat64 *)(ret))
#define stat(path, ret) __xstat64(LL_OLD_GLIBC_STAT, path, (struct stat64 *)(ret))
#define fstatat(folder, path, ret, flags) __fxstatat64(LL_OLD_GLIBC_STAT, folder, path, (struct stat64 *)(ret), flags)

#endif
#endif
