#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/scope.h"
#include "cli/options/command.h"
#include "driver/cards.h"
#include "mover/folder.h"
#include "mover/pool.h"
#include "mover/server.h"

struct mover_args {
	char *cards;
	uint64_t pool_bytes;
	bool has_no_neighbours;
	uint64_t linger_ns;
	uint64_t ready_fd;
};

static const struct ll_option mover_options[] = {
    LL_OPTION_CARDS(struct mover_args, cards),
    {.name = "pool",
     .placeholder = "SIZE",
     LL_OPTION_BYTES(struct mover_args, pool_bytes),
     .help = "Most of the host's memory that the mover pins. The default is half of it, or of what the control "
	     "group allows. A sixteenth is always left to others."},
    {.name = "no-neighbour",
     LL_OPTION_FLAG(struct mover_args, has_no_neighbours),
     .help = "Move memory to the host only. Without this it goes to another card of the host while nobody uses that "
	     "one, and on to the host when somebody does."},
    {.name = "linger",
     .placeholder = "TIME",
     LL_OPTION_DURATION(struct mover_args, linger_ns),
     .help = "End when there has been no evictable program for this long. Without it the mover runs until it is "
	     "ended."},
    {.name = "ready-fd",
     .placeholder = "NUMBER",
     LL_OPTION_UINT(struct mover_args, ready_fd),
     .help = "Write a NUL byte to this descriptor when programs can connect, and close it. `loadline run` uses it."},
    LL_OPTION_END,
};

static bool is_same_file(int fd, int other_fd)
{
	struct stat one, other;
	return fstat(fd, &one) == 0 && fstat(other_fd, &other) == 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

/* A standard error stream that is the same pipe is the starter's too, for what this program says until now. */
static void tell_ready(void *data)
{
	const struct mover_args *args = data;
	int fd = (int)args->ready_fd;
	if (fd <= STDERR_FILENO || write(fd, "", 1) != 1)
		return;
	int null_fd = is_same_file(fd, STDERR_FILENO) ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
	if (null_fd >= 0) {
		dup2(null_fd, STDERR_FILENO);
		close(null_fd);
	}
	close(fd);
}

static int find_card(const struct ll_driver *driver, const char *text, const struct ll_card **ret_card,
		     struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count = 0;
	int rc = ll_cards_select(driver, text, &cards, &count, err);
	if (!rc && count != 1) {
		ll_err_set(err, -EINVAL, "mover: %zu cards: a mover serves one", count);
		return ll_err_hint(err, "choose one by -i");
	}
	if (!rc)
		*ret_card = cards[0];
	return rc;
}

static int open_signals(int *ret_fd, struct ll_err *err)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	*ret_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? ll_err_set(err, -errno, "mover: signals: %s", strerror(errno)) : 0;
}

static int run_mover(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	struct mover_args *args = data;
	char folder[LL_FOLDER_SIZE];
	struct ll_driver *driver = NULL;
	const struct ll_card *card = NULL;
	LL_SCOPE_CLOSE int stop_fd = -1;
	if (operands->count)
		return ll_err_set(err, -EINVAL, "mover: takes no operands");
	prctl(PR_SET_TIMERSLACK, 1);
	prctl(PR_SET_NAME, "loadline-mover"); /* `loadline status` shows it */
	int rc = ll_driver_open(&driver, err);
	if (!rc)
		rc = find_card(driver, args->cards, &card, err);
	if (!rc)
		rc = ll_mover_folder(ll_driver_sim_folder(driver), folder, err);
	if (!rc)
		rc = open_signals(&stop_fd, err);
	if (!rc) {
		struct ll_mover_config config = {
		    .card = card,
		    .folder = folder,
		    .version = LOADLINE_VERSION,
		    .pool_bytes = args->pool_bytes,
		    .has_no_neighbours = args->has_no_neighbours,
		    .linger_ns = args->linger_ns,
		    .stop_fd = stop_fd,
		    .is_ready = tell_ready,
		    .data = args,
		};
		rc = ll_mover_serve(&config, err);
	}
	ll_driver_close(driver);
	return rc;
}

static const struct ll_example mover_examples[] = {
    {"loadline mover -i 0 --pool 64G", "Serve card 0, with at most 64 GiB of pinned host memory."},
    {NULL, NULL},
};

const struct ll_command ll_command_mover = {
    .name = "mover",
    .summary = "move evictable programs' memory off a card and back",
    .description =
	"Serves one card for the programs of its user: those that were started with `loadline run --evictable`. It has "
	"a small context on the card and a pool of pinned host memory. It copies a program's memory to the pool when "
	"`loadline evict` asks for it, or when another evictable program needs the room, and copies it back later. "
	"While "
	"nobody uses another card that is joined to this one, memory goes there first, which is several times faster. "
	"The "
	"program waits meanwhile; its addresses stay the same.\n\n"
	"`loadline run --evictable` starts a mover if the card has none. Start one by hand to choose the pool's size. "
	"A mover that is asked to end gives all programs their memory back first. If it is killed, its programs take "
	"their memory back by themselves.",
    .examples = mover_examples,
    .options = mover_options,
    .args_size = sizeof(struct mover_args),
    .run = run_mover,
};
