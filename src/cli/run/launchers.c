#include "cli/run/launchers.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/advice.h"
#include "base/err.h"
#include "base/translate.h"

/* ---- who has the work started elsewhere ---- */

static const char governed[] = "loadline run ... -- COMMAND";

struct launcher {
	const char *name;
	const char *starter;        /* who starts the work */
	const char *before, *after; /* of the governed command, in the form that works */
};

#define CONTAINER(name, starter)                                                                                       \
	{                                                                                                              \
		name, starter, name " run ... IMAGE ", ""                                                              \
	}

static const struct launcher launchers[] = {
    CONTAINER("docker", N_("its daemon")),
    CONTAINER("podman", N_("the container's runtime")),
    CONTAINER("nerdctl", N_("containerd")),
    {"docker-compose", N_("docker's daemon"), "command: ", N_(" (in the compose file)")},
    {"podman-compose", N_("the container's runtime"), "command: ", N_(" (in the compose file)")},
    {"ctr", N_("containerd"), "ctr run ... IMAGE ID ", ""},
    {"crictl", N_("the container runtime"), "crictl exec CONTAINER ", ""},
    {"lxc", N_("its daemon"), "lxc exec CONTAINER -- ", ""},
    {"incus", N_("its daemon"), "incus exec CONTAINER -- ", ""},
    {"apptainer", N_("the container's runtime"), "apptainer exec --nv ... IMAGE ", ""},
    {"singularity", N_("the container's runtime"), "singularity exec --nv ... IMAGE ", ""},
    {"enroot", N_("the container's runtime"), "enroot start ... NAME ", ""},
    {"srun", N_("Slurm's daemon on the node"), "srun ... ", ""},
    {"sbatch", N_("Slurm's daemon on the node"), "sbatch ... --wrap '", "'"},
    {"salloc", "Slurm", "salloc ... srun ", ""},
    {"flux", N_("Flux's broker"), "flux run ... ", ""},
    {"qsub", N_("the batch system"), "", N_(" (in the job's script)")},
    {"bsub", N_("the batch system"), "bsub ... ", ""},
    {"condor_submit", N_("the batch system"), "", N_(" (in the submit file)")},
    {"kubectl", N_("the node's kubelet"), "kubectl exec POD -- ", ""},
    {"oc", N_("the node's kubelet"), "oc exec POD -- ", ""},
    {"ssh", N_("the other host"), "ssh HOST ", ""},
    {"mosh", N_("the other host"), "mosh HOST -- ", ""},
    {"pdsh", N_("the other hosts"), "pdsh -w HOSTS ", ""},
    {"systemd-run", "systemd", "systemd-run --user ... ", ""},
    {"machinectl", "systemd", "machinectl shell NAME /usr/bin/env ", ""},
    {"screen", N_("a server that may run already"), "screen ... ", ""},
    {"tmux", N_("a server that may run already"), "tmux new-session ... ", ""},
    {"at", "atd", "echo '", "' | at TIME"},
    {"batch", "atd", "echo '", "' | batch"},
};

/* ---- programs that run another command ---- */

struct wrapper {
	const char *name;
	const char *letters; /* options with a value, which may be the next word */
	const char *longs;   /* the same by their names, each with a blank behind it */
	unsigned operands;   /* before the command */
	bool assigns;        /* NAME=VALUE may come before the command */
};

static const struct wrapper wrappers[] = {
    {"env", "uCS", "unset chdir split-string ", 0, true},
    {"nice", "n", "adjustment ", 0, false},
    {"nohup", "", "", 0, false},
    {"timeout", "ks", "kill-after signal ", 1, false},
    {"setsid", "", "", 0, false},
    {"stdbuf", "ioe", "input output error ", 0, false},
    {"time", "fo", "format output ", 0, false},
    {"ionice", "cn", "class classdata ", 0, false},
    {"taskset", "", "", 1, false},
    {"chrt", "TPD", "sched-runtime sched-period sched-deadline ", 1, false},
    {"numactl", "NmiCpPw", "cpunodebind membind interleave physcpubind preferred preferred-many weighted-interleave ",
     0, false},
    {"sudo", "ugpCDhRrtTU", "user group prompt close-from chdir host chroot role type command-timeout other-user ", 0,
     true},
    {"doas", "uC", "", 0, false},
};

static const char *base_of(const char *word)
{
	const char *slash = strrchr(word, '/');
	return slash ? slash + 1 : word;
}

static const struct wrapper *find_wrapper(const char *word)
{
	for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
		if (strcmp(base_of(word), wrappers[i].name) == 0)
			return &wrappers[i];
	}
	return NULL;
}

/* "unset": one of "unset chdir "? */
static bool is_among(const char *names, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = strstr(names, name); at; at = strstr(at + 1, name)) {
		if ((at == names || at[-1] == ' ') && at[length] == ' ')
			return true;
	}
	return false;
}

/* Whether the next word is the value of this option. In "-iu" it is that of the last letter; "-u1" has its own. */
static bool takes_next(const struct wrapper *wrapper, const char *option)
{
	if (option[1] == '-')
		return option[2] && is_among(wrapper->longs, option + 2);
	for (const char *letter = option + 1; *letter; letter++) {
		if (strchr(wrapper->letters, *letter))
			return !letter[1];
	}
	return false;
}

/* Returns the command that the wrapper runs; NULL: none. */
static char *const *skip_wrapper(const struct wrapper *wrapper, char *const *words)
{
	bool has_options = true;
	unsigned operands = wrapper->operands;
	for (words++; *words; words++) {
		const char *word = *words;
		bool is_option = has_options && word[0] == '-' && word[1];
		bool is_assignment = !is_option && wrapper->assigns && strchr(word, '=');
		if (is_option)
			words += takes_next(wrapper, word) && words[1];
		else if (!is_assignment && !operands--)
			return words;
		has_options = is_option && strcmp(word, "--") != 0;
	}
	return NULL;
}

static int fail_launcher(const struct launcher *launcher, struct ll_err *err)
{
	char command[96];
	ll_advice_copy(command, sizeof command, governed);
	ll_err_set(err, -EREMOTE, "limits do not reach into what %s starts: %s starts it", launcher->name,
		   _(launcher->starter));
	return ll_err_hint(err, "put loadline inside: %s%s%s", launcher->before, command,
			   *launcher->after ? _(launcher->after) : "");
}

int ll_launchers_check(char *const *words, struct ll_err *err)
{
	const struct wrapper *wrapper;
	while (words && *words && (wrapper = find_wrapper(*words)))
		words = skip_wrapper(wrapper, words);
	for (size_t i = 0; words && *words && i < sizeof launchers / sizeof *launchers; i++) {
		if (strcmp(base_of(*words), launchers[i].name) == 0)
			return fail_launcher(&launchers[i], err);
	}
	return 0;
}
