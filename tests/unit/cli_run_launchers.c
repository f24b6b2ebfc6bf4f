/* Commands that have the work started by somebody else are known by their names, also behind programs that run others.
 */
#include <errno.h>

#include "test.h"

#include "cli/run/run.h"

enum { WORDS_MAX = 16, TEXT = 128 };

static int check(const char *command, struct ll_err *err)
{
	char copy[TEXT], *words[WORDS_MAX] = {NULL}, *rest = NULL;
	size_t count = 0;
	snprintf(copy, sizeof copy, "%s", command);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		words[count++] = word;
	assert_true(count < WORDS_MAX);
	return ll_launchers_check(words, err);
}

static const char *const forms[][2] = {
    {"docker", "docker run ... IMAGE loadline run ... -- COMMAND"},
    {"podman", "podman run ... IMAGE loadline run ... -- COMMAND"},
    {"nerdctl", "nerdctl run ... IMAGE loadline run ... -- COMMAND"},
    {"docker-compose", "command: loadline run ... -- COMMAND (in the compose file)"},
    {"podman-compose", "command: loadline run ... -- COMMAND (in the compose file)"},
    {"ctr", "ctr run ... IMAGE ID loadline run ... -- COMMAND"},
    {"crictl", "crictl exec CONTAINER loadline run ... -- COMMAND"},
    {"lxc", "lxc exec CONTAINER -- loadline run ... -- COMMAND"},
    {"incus", "incus exec CONTAINER -- loadline run ... -- COMMAND"},
    {"apptainer", "apptainer exec --nv ... IMAGE loadline run ... -- COMMAND"},
    {"singularity", "singularity exec --nv ... IMAGE loadline run ... -- COMMAND"},
    {"enroot", "enroot start ... NAME loadline run ... -- COMMAND"},
    {"srun", "srun ... loadline run ... -- COMMAND"},
    {"sbatch", "sbatch ... --wrap 'loadline run ... -- COMMAND'"},
    {"salloc", "salloc ... srun loadline run ... -- COMMAND"},
    {"flux", "flux run ... loadline run ... -- COMMAND"},
    {"qsub", "loadline run ... -- COMMAND (in the job's script)"},
    {"bsub", "bsub ... loadline run ... -- COMMAND"},
    {"condor_submit", "loadline run ... -- COMMAND (in the submit file)"},
    {"kubectl", "kubectl exec POD -- loadline run ... -- COMMAND"},
    {"oc", "oc exec POD -- loadline run ... -- COMMAND"},
    {"ssh", "ssh HOST loadline run ... -- COMMAND"},
    {"mosh", "mosh HOST -- loadline run ... -- COMMAND"},
    {"pdsh", "pdsh -w HOSTS loadline run ... -- COMMAND"},
    {"systemd-run", "systemd-run --user ... loadline run ... -- COMMAND"},
    {"machinectl", "machinectl shell NAME /usr/bin/env loadline run ... -- COMMAND"},
    {"screen", "screen ... loadline run ... -- COMMAND"},
    {"tmux", "tmux new-session ... loadline run ... -- COMMAND"},
    {"at", "echo 'loadline run ... -- COMMAND' | at TIME"},
    {"batch", "echo 'loadline run ... -- COMMAND' | batch"},
};

TEST(each_is_told_its_own_form)
{
	struct ll_err err;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		char command[TEXT], text[TEXT], hint[sizeof err.hint];
		snprintf(command, sizeof command, "/usr/bin/%s a b", forms[i][0]);
		snprintf(text, sizeof text, "limits do not reach into what %s starts: ", forms[i][0]);
		snprintf(hint, sizeof hint, "put loadline inside: %s", forms[i][1]);
		assert_fails(check(command, &err), -EREMOTE, text);
		assert_string_equal(err.hint, hint);
		assert_int_equal(check(forms[i][0], &err), -EREMOTE);
	}
}

static const char *const wrapped[] = {
    "env docker",
    "env -i docker",
    "env A=b C=d docker",
    "env -u A B=c docker",
    "env -iu A docker",
    "env --unset A --chdir=/ -- B=c docker",
    "nice docker",
    "nice -n 5 docker",
    "nice -n5 docker",
    "nice -5 docker",
    "nice --adjustment 5 docker",
    "nohup docker",
    "timeout 5 docker",
    "timeout -k 1 -s KILL 5s docker",
    "timeout --signal=KILL --kill-after 1 5s docker",
    "setsid -w docker",
    "stdbuf -oL -e 0 docker",
    "time -f %e docker",
    "ionice -c 3 docker",
    "ionice -c2 -n0 docker",
    "taskset -c 0-3 docker",
    "chrt -b 0 docker",
    "numactl -N 0 --membind 0 docker",
    "sudo docker",
    "sudo -E -u someone A=b docker",
    "sudo --user someone -- docker",
    "doas -u someone docker",
    "/usr/bin/env nice /bin/nohup timeout 5 setsid stdbuf -oL /usr/local/bin/docker run",
};

static const char *const others[] = {
    "python3 docker",
    "dockerd",
    "docker/python3",
    "docker.py",
    "env",
    "env A=docker",
    "env -u docker",
    "env -u docker python3",
    "env --unset docker python3",
    "env python3 docker",
    "timeout docker",
    "timeout docker python3",
    "timeout -s docker 5 python3",
    "nice -n docker python3",
    "taskset docker python3",
    "sudo -u docker python3",
    "A=docker python3",
    "sh -c docker",
};

TEST(they_are_known_behind_programs_that_run_others)
{
	struct ll_err err = {0};
	for (size_t i = 0; i < sizeof wrapped / sizeof *wrapped; i++) {
		if (check(wrapped[i], &err) != -EREMOTE)
			fail_msg("not known: %s", wrapped[i]);
	}
}

TEST(a_word_of_the_same_name_is_no_command)
{
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		if (check(others[i], NULL) != 0)
			fail_msg("taken for docker: %s", others[i]);
	}
}

TEST(under_the_simulator_the_form_has_it_too)
{
	struct ll_err err = {0};
	setenv("LOADLINE_SIM", "--sim", 1);
	assert_int_equal(check("docker", &err), -EREMOTE);
	unsetenv("LOADLINE_SIM");
	assert_string_equal(err.hint, "put loadline inside: docker run ... IMAGE loadline --sim run ... -- COMMAND");
}
