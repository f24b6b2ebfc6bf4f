/* loadlined. `loadline run` and the monitors of jobs start a user's daemon, with a listening socket. The system's
 * daemon is started by systemd, or by root. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "daemon/core/server.h"

static const char help[] = "usage: loadlined --help | --version\n"
			   "       loadlined --system [--user NAME] [--config PATH] [--state FOLDER]\n"
			   "\n"
			   "loadlined keeps the books of one user: which tenants and jobs there are, and which\n"
			   "processes they have. It decides how much memory of a card each of these may use, and\n"
			   "which of them may launch. `loadline run` starts it, and it ends 2 seconds after the\n"
			   "last job. If it is ended before, the monitor of a job (loadline-job) starts it again.\n"
			   "`loadline status` shows what it knows, `loadline doctor` where it is. It is not\n"
			   "started by hand.\n"
			   "\n"
			   "With --system it serves all users, at /run/loadline/socket, until it is ended.\n"
			   "systemd starts it (loadlined.socket). Started by root it makes the socket, and goes on\n"
			   "as user NAME (default: loadline). It reads PATH, a file or a folder as for `loadline\n"
			   "config check`, at its start and at SIGHUP. Without --config that is\n"
			   "/etc/loadline/loadline.yaml, if the file exists; for simulated cards it is none. If the\n"
			   "files have faults, it does not start (exit status 2), and at SIGHUP the former\n"
			   "configuration stays in force.\n"
			   "\n"
			   "The accounts of use are in FOLDER, which that user must be able to write (default:\n"
			   "$STATE_DIRECTORY; without either there are none).\n";

enum { SERVE_WORDS = 5 };

/* Opens a log for a simulated world. Elsewhere nobody reads the output of a detached process. */
static void open_log(void)
{
	char path[PATH_MAX];
	const char *folder = getenv("LOADLINE_SIM_DIR");
	ll_log_set_level(LL_LOG_ERROR);
	if (!folder)
		return;
	snprintf(path, sizeof path, "%s/loadlined.log", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	ll_log_set_level(LL_LOG_DEBUG);
	ll_log_set_fd(fd);
}

/* loadlined --serve PLACE DAEMON MONITOR, with the listening socket as LL_DAEMON_LISTEN_FD. */
static int run_server(char **words)
{
	struct ll_err err = {0};
	struct ll_server_config config = {
	    .listen_fd = LL_DAEMON_LISTEN_FD,
	    .version = LOADLINE_VERSION,
	    .programs = {.daemon = words[3], .monitor = words[4]},
	};
	open_log();
	int rc = ll_place_read(words[2], &config.place);
	if (rc)
		ll_err_set(&err, rc, "'%.100s': not a place of loadlined", words[2]);
	else if (!ll_place_system_beside(config.place.name, getenv("LOADLINE_SIM_DIR"), &config.system_place))
		config.system_place.name[0] = '\0';
	if (!rc)
		rc = ll_server_run(&config, &err);
	if (rc)
		fprintf(stderr, "loadlined: %s\n", err.text);
	return ll_err_exit_code(rc);
}

/* ---- the system's daemon ---- */

static const char system_user[] = "loadline";

/* Makes the socket if loadlined was started by hand. As root it then becomes the user. Otherwise it serves as the
 * present user, in its own simulated world. */
static int make_socket(struct ll_server_config *config, const char *user_name, bool is_simulated, struct ll_err *err)
{
	struct ll_system_user user = {0, 0};
	bool changes = user_name || (!is_simulated && geteuid() == 0);
	int rc = changes ? ll_system_user_find(user_name ? user_name : system_user, &user, err) : 0;
	if (!rc)
		rc = ll_system_socket_bind(&config->place, changes ? &user : NULL, &config->listen_fd, err);
	if (!rc && changes)
		rc = ll_system_user_become(&user, err);
	if (!rc && listen(config->listen_fd, 1)) /* the server's own listen() sets the length of the queue */
		rc = ll_err_set(err, -errno, "%s: %s", config->place.name, strerror(errno));
	return rc;
}

static void raise_file_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

struct system_words {
	const char *user, *config, *state; /* NULL: not given */
};

/* loadlined --system [--user NAME] [--config PATH] [--state FOLDER] */
static int serve_system(const struct system_words *words)
{
	struct ll_err err = {0};
	const char *sim_folder = getenv("LOADLINE_SIM_DIR");
	struct ll_server_config config = {.version = LOADLINE_VERSION,
					  .is_system = true,
					  .has_policy = words->config || !sim_folder,
					  .policy_path = words->config,
					  /* Who tries a configuration on simulated cards tries all of it. */
					  .admin = sim_folder && !words->user ? geteuid() : 0,
					  .state_folder = words->state};
	ll_log_set_level(LL_LOG_WARN); /* for the journal */
	if (sim_folder)
		open_log();
	raise_file_limit();
	int rc = ll_place_of_system(sim_folder, &config.place);
	if (rc)
		ll_err_set(&err, rc, "LOADLINE_SIM_DIR: %s", strerror(-rc));
	config.listen_fd = ll_system_socket_passed();
	if (!rc && config.listen_fd < 0)
		rc = make_socket(&config, words->user, sim_folder, &err);
	if (!rc)
		rc = ll_server_run(&config, &err);
	if (rc)
		fprintf(stderr, err.hint[0] ? "loadlined: %s; %s\n" : "loadlined: %s\n", err.text, err.hint);
	return ll_err_exit_code(rc);
}

/* Returns false if there are other words. */
static bool read_system_words(char **argv, struct system_words *ret_words)
{
	*ret_words = (struct system_words){NULL, NULL, NULL};
	for (; *argv; argv += 2) {
		const char **value = strcmp(*argv, "--user") == 0     ? &ret_words->user
				     : strcmp(*argv, "--config") == 0 ? &ret_words->config
				     : strcmp(*argv, "--state") == 0  ? &ret_words->state
								      : NULL;
		if (!value || *value || !argv[1])
			return false;
		*value = argv[1];
	}
	if (!ret_words->state)
		ret_words->state = getenv("STATE_DIRECTORY");
	return true;
}

int main(int argc, char **argv)
{
	struct system_words words;
	if (argc > 1 && strcmp(argv[1], "--system") == 0 && read_system_words(argv + 2, &words))
		return serve_system(&words);
	if (argc == 3 && strcmp(argv[1], "--lookup") == 0)
		return ll_identity_print(argv[2]);
	if (argc == SERVE_WORDS && strcmp(argv[1], "--serve") == 0)
		return run_server(argv);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("loadlined " LOADLINE_VERSION);
		return LL_EXIT_OK;
	}
	bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
	fputs(help, is_help ? stdout : stderr);
	return is_help ? LL_EXIT_OK : LL_EXIT_USAGE;
}
