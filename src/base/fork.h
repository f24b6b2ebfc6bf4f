/*
 * fork.h - what a forked child must do at once, such as closing the lock descriptors that it shares with its parent.
 *
 * A lock belongs to the open file description, which a child shares. So the child would keep the parent's claims alive
 * after the parent was killed. An item is a member of the structure that it acts on.
 */
#ifndef LOADLINE_BASE_FORK_H
#define LOADLINE_BASE_FORK_H

struct ll_fork_item {
	void (*in_child)(struct ll_fork_item *item); /* runs in the child before fork returns: one thread, no locks */
	struct ll_fork_item *previous, *next;
};

/* Between the two calls no thread can fork. So a thread can open a descriptor and store it where in_child finds it.
 * Keep it short. */
void ll_fork_block(void);
void ll_fork_unblock(void);

void ll_fork_add(struct ll_fork_item *item);
void ll_fork_remove(struct ll_fork_item *item);

#endif
