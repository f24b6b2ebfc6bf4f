/*
 * user.h - the name of a user, and the user of a name.
 */
#ifndef LOADLINE_CLI_COMMON_USER_H
#define LOADLINE_CLI_COMMON_USER_H

#include <stddef.h>
#include <sys/types.h>

struct ll_err;

/* Writes the user's name, perhaps cut; the number if the user has no name here. */
void ll_user_name(uid_t uid, char *ret_name, size_t size);

/* Finds the user by name, or by number. -EINVAL. */
int ll_user_find(const char *text, uid_t *ret_uid, struct ll_err *err);

#endif
