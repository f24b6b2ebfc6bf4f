/*
 * close_from.h - what a program that is about to be started shall not inherit.
 */
#ifndef LOADLINE_BASE_CLOSE_FROM_H
#define LOADLINE_BASE_CLOSE_FROM_H

/*
 * Closes all descriptors from `first` on. To be called between fork and exec: if the kernel can, they are closed in
 * exec. So a lock of the caller holds until the program can be found by its name, even if the caller is killed
 * meanwhile. Makes system calls alone.
 */
void ll_close_from(unsigned first);

/* The same, and they are closed at once: for a child that goes on without exec. */
void ll_close_from_now(unsigned first);

#endif
