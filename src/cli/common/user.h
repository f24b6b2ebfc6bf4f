/*
 * user.h - the name of a user.
 */
#ifndef LOADLINE_CLI_COMMON_USER_H
#define LOADLINE_CLI_COMMON_USER_H

#include <stddef.h>
#include <sys/types.h>

/* Writes the user's name, perhaps cut; the number if the user has no name here. */
void ll_user_name(uid_t uid, char *ret_name, size_t size);

#endif
