/*
 * close_from.h - closes the descriptors that a started program shall not inherit.
 */
#ifndef LOADLINE_BASE_CLOSE_FROM_H
#define LOADLINE_BASE_CLOSE_FROM_H

/*
 * Closes all descriptors from `first` on. Call it between fork and exec. If the kernel supports it, they are closed in
 * exec. So a lock of the caller is held until the program can be found by its name, even if the caller is killed
 * meanwhile. Makes only system calls.
 */
void ll_close_from(unsigned first);

/* The same, but closes them at once, for a child that continues without exec. */
void ll_close_from_now(unsigned first);

#endif
