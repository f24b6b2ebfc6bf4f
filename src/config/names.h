/*
 * names.h - whether the users and groups of a configuration are known on this machine. A directory such as LDAP may not
 * answer, and a library call for it cannot be given up: getent(1) is asked, and ended at a deadline.
 */
#ifndef LOADLINE_CONFIG_NAMES_H
#define LOADLINE_CONFIG_NAMES_H

#include <stdint.h>

#include "config/config.h"

#define LL_CONFIG_GETENT "/usr/bin/getent"

/* Warns of each user and group that getent does not know, or once of what it could not say within wait_ns. getent: the
 * path of the program. A user "*" is not asked for. */
void ll_config_check_names(const struct ll_config_policy *policy, const char *getent, uint64_t wait_ns,
			   struct ll_config_findings *findings);

#endif
