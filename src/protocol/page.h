/*
 * page.h - the memory that a job's processes and loadlined share: two mappings, which the daemon makes when the job
 * registers.
 *
 *   - The page (struct ll_page), which both sides write: memory, the processes' reports of their
 *     launches, the words that streams wait for, accounts.
 *   - The orders (struct ll_orders), which only the daemon writes: limits, and the permissions of
 *     each process.
 *
 * A slot is one process on one card. It has the same index in both mappings. The daemon gives slots and takes them
 * back. A process writes its own slot and the words of its card, and only reads the rest.
 *
 * The job's monitor keeps both descriptors. A new daemon adopts the mappings unchanged, because streams wait for words
 * in them and processes have charged their memory in them.
 *
 * Every field that changes is one naturally aligned atomic word. Times are CLOCK_MONOTONIC of the daemon. A process in
 * another time namespace adds the difference that LL_MESSAGE_CLAIMED carried. The mappings contain no pointers. A
 * change of any offset or meaning needs a new LL_PAGE_VERSION.
 */
#ifndef LOADLINE_PROTOCOL_PAGE_H
#define LOADLINE_PROTOCOL_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/program.h"
#include "protocol/words.h"

enum {
	LL_PAGE_VERSION = 1,
	LL_PAGE_SLOTS = 1024,
	LL_PAGE_CARDS = 64,
	LL_PAGE_UUID_SIZE = 96,
	LL_PAGE_BLOCK = 4096,
};

/* "llpage" and "llorder" as they lie in memory. */
#define LL_PAGE_MAGIC UINT64_C(0x0000656761706c6c)
#define LL_ORDERS_MAGIC UINT64_C(0x00726564726f6c6c)

/* Memory is counted in units, so that two counts fit into one word, each of at most 2 TiB. A size that is not a
 * multiple is rounded up. */
#define LL_MEMORY_UNIT UINT64_C(512)
#define LL_MEMORY_UNITS_MAX UINT32_MAX

static inline uint64_t ll_memory_units(uint64_t bytes)
{
	return bytes / LL_MEMORY_UNIT + (bytes % LL_MEMORY_UNIT != 0);
}

/*
 * The memory word of a slot: granted << 32 | used. The process changes `used`: it adds by compare-and-swap while the
 * sum stays within `granted`, and subtracts at any time. It may add beyond `granted` only for memory that the driver
 * has already allocated (charge). The daemon changes `granted` by compare-and-swap, and never sets it below `used`.
 */
#define LL_MEMORY_WORD(granted, used) ((uint64_t)(granted) << 32 | (uint32_t)(used))
#define LL_MEMORY_GRANTED(word) ((uint32_t)((word) >> 32))
#define LL_MEMORY_USED(word) ((uint32_t)(word))

/* An order is valid for this long without a beat of the daemon, if the daemon has ended. It is valid several times
 * as long while the connection to the daemon stands (shim/link/link.h). After that, gates are open and streams
 * continue. */
#define LL_LEASE_NS UINT64_C(250000000)
#define LL_BEAT_NS UINT64_C(50000000)

/* ---- the page ---- */

/* How long the card worked for a job, in bins of time (busy_bins.h). Initially all 0. */
enum { LL_BUSY_BINS = 64, LL_BUSY_LONG_BINS = 256, LL_BUSY_NUMBER_SHIFT = 24 };
#define LL_BUSY_BIN_NS UINT64_C(500000)
#define LL_BUSY_LONG_BIN_NS UINT64_C(8000000)
struct ll_busy_bins {
	_Atomic uint64_t words[LL_BUSY_BINS]; /* number of the bin << LL_BUSY_NUMBER_SHIFT | ns counted in it */
	_Atomic uint64_t long_words[LL_BUSY_LONG_BINS];
};

/*
 * When the card worked for a job: whether it did at each of these moments, 250 us apart. Sample N of a word is the
 * moment in the middle of the word's part N. The number of the word, of which 16 bits are kept, is CLOCK_MONOTONIC
 * divided by LL_WORK_WORD_NS. shim/link/card_work.c writes them, daemon/accounts/account.c reads them. Initially all
 * 0.
 */
enum { LL_WORK_WORDS = 160, LL_WORK_SAMPLES = 48 };
#define LL_WORK_SAMPLE_NS UINT64_C(250000)
#define LL_WORK_WORD_NS (LL_WORK_SAMPLES * LL_WORK_SAMPLE_NS)
#define LL_WORK_BITS ((UINT64_C(1) << LL_WORK_SAMPLES) - 1)
struct ll_work_samples {
	_Atomic uint64_t words[LL_WORK_WORDS]; /* number of the word << LL_WORK_SAMPLES | samples */
};

/* The job on one card. */
struct ll_page_card {
	/* of all its processes on the card, ended ones included; overlapping kernels count once */
	_Atomic uint64_t gpu_time_ns;
	/* when a process of the job first had no slot, and when that was last reported; 0: never */
	_Atomic uint64_t lost_since_ns, lost_seen_ns;
	/* of ended processes; the daemon writes them (accounts.h) */
	_Atomic uint64_t ended_unit_ms;
	_Atomic uint64_t ended_waited_ns[LL_WAITS];
	/* for the accounts: how long the card ran kernels of the job. gpu_time_ns is what the job pays for: whole
	 * visits
	 */
	_Atomic uint64_t work_ns;
	_Atomic uint64_t reserved[7];
	struct ll_busy_bins busy;
	struct ll_work_samples samples;
	char unused[LL_PAGE_BLOCK - 128 - sizeof(struct ll_busy_bins) - sizeof(struct ll_work_samples)];
};

enum ll_post_flag {
	LL_POST_ON_CARD = 1,     /* launches wait on the card, not in the host */
	LL_POST_QUEUE_EMPTY = 2, /* the process wants the card, and has nothing queued now */
	LL_POST_OVERRUNS = 4,    /* a launch of its visit still runs after the visit */
	LL_POST_LAUNCHED = 8,    /* the process has launched since it got LL_ORDER_PAUSED */
};

#define LL_LIFE_ENDED UINT32_C(0x40000000) /* FUTEX_OWNER_DIED */

struct ll_page_slot {
	/* identity: the daemon writes it, the token last; it clears the token first */
	_Atomic uint64_t token;       /* 0: the slot is free; otherwise unique for ever in this page */
	_Atomic uint32_t card;        /* index in `cards` of both mappings */
	_Atomic int32_t pid;          /* as the process sent it, in `namespaces` */
	_Atomic uint64_t namespaces;  /* ll_process_namespaces of the process; 0: unknown */
	_Atomic uint64_t start_ticks; /* of the process */
	_Atomic uint64_t taken_ns;
	_Atomic uint32_t checkpoint; /* enum ll_claim_checkpoint */
	/* 1 + its number among the claims of the card ("17" in "0/17"); 0: it has none yet. A daemon that adopts the
	 * page keeps the number if no other claim has it, because users identify the process by it. */
	_Atomic uint32_t number;
	/* the link's thread of the process: its thread id, with LL_LIFE_ENDED from its end on. The kernel writes that
	 * (a robust futex). In a process that lives the thread ends only when the process executes another program. 0:
	 * unknown */
	_Atomic uint32_t life;
	_Atomic uint32_t reserved_identity[3];

	/* memory: a cache line of its own */
	_Atomic uint64_t memory; /* LL_MEMORY_WORD */
	/* serial << 32 | units that the process wants beyond its used memory. The process raises the serial, and sends
	 * WAKE. When it has the memory it writes 0 units with the same serial. Until then the daemon reserves the units
	 * for it (20 ms). */
	_Atomic uint64_t memory_want;
	/* serial << 32 | positive errno: the daemon's reply to that want. 0: try again; ENOMEM: the limit does not
	 * allow it. */
	_Atomic uint64_t memory_reply;
	_Atomic uint64_t evictable_bytes; /* of the used memory: what can be moved */
	_Atomic uint64_t away_bytes;      /* of evictable_bytes: what is not on the card now */
	_Atomic uint32_t residency;       /* enum ll_claim_residency */
	_Atomic uint32_t state;           /* enum ll_claim_state */
	/* serial: the daemon requests the reserve of the process's pools, and wakes the process */
	_Atomic uint32_t reserve_asked;
	_Atomic uint32_t reserve_given; /* serial: the process has freed what it could, and sends WAKE */
	_Atomic uint64_t reserved_memory;

	/* launches: the report of the process (a post), and its gate */
	_Atomic uint64_t activity_ns;   /* LL_ACTIVITY_NOW while work is queued or running; otherwise when that last was
					   so; 0: never */
	_Atomic uint64_t posted_ns;     /* of the last post */
	_Atomic uint64_t want_since_ns; /* since when it has launches that wait or run; 0: it has none */
	_Atomic uint64_t queued_ns;     /* estimated duration of its work that the card has not completed */
	/* how long the card has worked on launches of the process that are not charged yet */
	_Atomic uint64_t running_ns;
	_Atomic uint32_t queued_launches;
	_Atomic uint32_t launch_mode; /* enum ll_launch_mode */
	_Atomic uint32_t post_flags;  /* enum ll_post_flag */
	_Atomic uint32_t gate;        /* enum ll_gate; the daemon may shut it too */
	_Atomic uint32_t post;        /* counts posts that need a new decision of the daemon: the process sends WAKE */
	_Atomic uint32_t wake_count;  /* a futex: counts changes that others made for the process */

	/* accounts; they only rise */
	_Atomic uint64_t gpu_time_ns;         /* completed kernels */
	_Atomic uint64_t memory_moments;      /* modulo 2^64; see accounts.h */
	_Atomic uint64_t waited_ns[LL_WAITS]; /* sum over all threads */
	_Atomic uint64_t completed_launches;  /* launches of the process that the card is known to have completed */
	/* how long copies between host and card ran: of a copy that the program waits for as measured, else by its size
	 */
	_Atomic uint64_t copied_ns;

	/* a short text for users, NUL-padded; text_sequence is odd while it is written */
	_Atomic uint32_t text_sequence;
	_Atomic uint32_t reserved_text;
	_Atomic uint64_t note[8];

	_Atomic uint32_t time_lever;  /* enum ll_time_lever */
	_Atomic uint32_t is_off_card; /* the process has taken its contexts off the card */
	_Atomic uint64_t wanted_ns;   /* how long it has had launches that waited or ran, until it last rested */
	_Atomic uint64_t reserved[21];
};

struct ll_page {
	uint64_t magic;
	uint32_t version, bytes;
	/* 1 + the highest slot that was ever given, as in the orders. Processes do not read slots beyond it. The daemon
	 * writes it before it gives the slot. */
	_Atomic uint32_t slot_end;
	uint32_t reserved;
	char unused[LL_PAGE_BLOCK - 24];
	/* One word for each card, for the job's streams: LL_VISIT_WORD_OPEN while they may continue; the other bits are
	 * a counter. The words have a block of their own, because processes register it with the driver. */
	_Atomic uint32_t card_words[LL_PAGE_BLOCK / 4];
	struct ll_page_card cards[LL_PAGE_CARDS];
	struct ll_page_slot slots[LL_PAGE_SLOTS];
};

/* ---- the orders ---- */

enum ll_order_flag {
	LL_ORDER_MAY_LAUNCH = 1,    /* no debt; if the card is given for visits, the job has the turn and keeps it */
	LL_ORDER_IS_ALONE = 2,      /* no cap, no higher class and no visits: the gate may be open */
	LL_ORDER_IS_SLICED = 4,     /* other jobs work too, and no job needs visits: the card's time slices serve all */
	LL_ORDER_IS_HOLDER = 8,     /* the job has the turn, even if it may not launch */
	LL_ORDER_IS_EXCLUSIVE = 16, /* the card is given for visits, and launches of the process wait on the card */
	LL_ORDER_IS_ENDING = 32,    /* the job has the turn and shall give it away: its queue drains */
	LL_ORDER_PAUSED = 64,       /* the job gave the turn to a lower class for want of work (LL_POST_LAUNCHED) */
	/* the process wants nothing now; when it wants the card, its gate may be opened at once */
	LL_ORDER_IS_FREE = 128,
	LL_ORDER_YIELDS_TO_GANG = 256, /* another tenant has the turn on the first card of both, and goes first here */
	LL_ORDER_GANG_IS_ENDING = 512, /* the job has the turn on its first card, and is about to give it away */
	/* a lower class wants the card, or wanted it lately: work of the process delays that class */
	LL_ORDER_IS_ABOVE = 1024,
};

struct ll_orders_slot {
	_Atomic uint32_t sequence; /* odd while the daemon writes the rest */
	_Atomic uint32_t post;     /* the newest post that the daemon has read (ll_page_slot.post) */
	_Atomic uint32_t flags;    /* enum ll_order_flag */
	_Atomic uint32_t waiting;  /* number of other claims that want the card */
	_Atomic uint32_t sharing;  /* number of other jobs whose work is on the card now */
	/* the job's launches on other cards, which may need launches on this card to complete */
	_Atomic uint32_t awaited_launches;
	_Atomic uint64_t awaited_ns;     /* when other cards last had any; 0: never */
	_Atomic uint64_t turn_since_ns;  /* when the present holder got the turn */
	_Atomic int64_t tokens_ns;       /* of the job's account; INT64_MAX without a cap */
	_Atomic int64_t tokens_most_ns;  /* the largest balance of that account; INT64_MAX without a cap */
	_Atomic uint64_t tokens_at_ns;   /* when the account had tokens_ns; from then on the cap's rate refills it; 0:
					    there is no cap */
	_Atomic uint64_t queue_bound_ns; /* work that may be queued while a higher class is on the card; 0: no bound */
	_Atomic uint64_t gang_ns;        /* as awaited_ns, on the job's first card */
	_Atomic uint32_t gang_launches;
	_Atomic uint32_t reserved_gang;
	/* 1 + the part of the job's gpu_time_ns (ll_page_card) that the account has paid; 0: unknown. The process
	 * subtracts newer GPU time itself, because loadlined may be late. */
	_Atomic uint64_t charged_ns;
	/* the process's time on the card (struct ll_card_time) */
	_Atomic uint32_t window_us, window_period_us;
	_Atomic uint64_t window_from_ns;
	_Atomic uint32_t slice_us;
	_Atomic uint32_t reserved[3];
};

struct ll_orders_card {
	/* NUL-padded; written once; 0: no card of the job has this index */
	_Atomic uint64_t uuid[LL_PAGE_UUID_SIZE / 8];
	_Atomic uint64_t used_bytes; /* from the books: memory of processes, and memory of ended processes that the
					driver has not freed yet */
	/* when a process with memory on this card last ended, of any job; 0: never. The driver frees the memory about
	 * 0.1 s later. */
	_Atomic uint64_t death_ns;
	_Atomic uint64_t usable_bytes; /* of the card, from `run`; 0: unknown */
	/* of used_bytes: memory of ended processes that the driver has not freed yet. The daemon writes it before it
	 * gives their slots to others. */
	_Atomic uint64_t leaving_bytes;
};

enum { LL_COMPANY_ROWS = 12, LL_COMPANY_NAMES_SIZE = 96 };

/* The job beside one set of other jobs on a card, counted by loadlined (daemon/arbiter/card_company.c). company.h reads
 * and writes it. All 0: empty. */
struct ll_orders_company {
	_Atomic uint32_t sequence;        /* odd while it is written */
	_Atomic uint32_t card;            /* index */
	_Atomic uint64_t way;             /* enum ll_way */
	_Atomic uint64_t program, others; /* program.h */
	_Atomic uint64_t ns, launches;    /* time together, and launches completed in that time */
	_Atomic uint64_t names[LL_COMPANY_NAMES_SIZE / 8];
};

struct ll_orders {
	uint64_t magic;
	uint32_t version, bytes;
	uint64_t token[2];                /* of the job */
	_Atomic uint64_t instance;        /* identifies the daemon that serves; if it changes, connect again */
	_Atomic uint32_t wake_count;      /* a futex: counts changes of instance and limits */
	_Atomic uint32_t beat;            /* rises every LL_BEAT_NS while an order keeps a process from launching */
	_Atomic uint32_t limits_sequence; /* odd while the limits are written */
	_Atomic uint32_t slot_changes;    /* counts slots given and taken; raised after each change. A reader lists the
					     slots again when it changes */
	_Atomic uint64_t limits[sizeof(struct ll_limits) / 8];
	_Atomic uint32_t slot_end; /* 1 + the highest slot that was ever given */
	uint32_t reserved;
	char unused[LL_PAGE_BLOCK - 112];
	struct ll_orders_card cards[LL_PAGE_CARDS];
	_Atomic uint64_t promisable_bytes[LL_PAGE_CARDS]; /* from `run` (LL_MESSAGE_BIND); kept for the next daemon */
	/* The program of the job as the monitor sent it, and its speed beside others. Kept for the next daemon and for
	 * the monitor. 0: unknown */
	_Atomic uint64_t program;
	_Atomic uint64_t program_name[LL_PROGRAM_NAME_SIZE / 8];
	struct ll_orders_company company[LL_COMPANY_ROWS];
	char unused_cards[3 * LL_PAGE_BLOCK - LL_PAGE_CARDS * 136 - 8 - LL_PROGRAM_NAME_SIZE -
			  LL_COMPANY_ROWS * sizeof(struct ll_orders_company)];
	struct ll_orders_slot slots[LL_PAGE_SLOTS];
};

_Static_assert(sizeof(struct ll_page_card) == LL_PAGE_BLOCK, "a block");
_Static_assert(offsetof(struct ll_page_slot, memory) == 64, "a cache line");
_Static_assert(offsetof(struct ll_page_slot, activity_ns) == 128, "a cache line");
_Static_assert(offsetof(struct ll_page_slot, gpu_time_ns) == 192, "a cache line");
_Static_assert(sizeof(struct ll_page_slot) == 512, "whole cache lines");
_Static_assert(offsetof(struct ll_page, card_words) == LL_PAGE_BLOCK, "a block of their own");
_Static_assert(sizeof(struct ll_orders_slot) == 128, "whole cache lines");
_Static_assert(sizeof(struct ll_orders_card) == 128, "whole cache lines");
_Static_assert(offsetof(struct ll_orders, cards) == LL_PAGE_BLOCK, "a block");
_Static_assert(offsetof(struct ll_orders, slots) == 4 * LL_PAGE_BLOCK, "a block");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "words shared by processes need no lock");

/* ---- the daemon's side ---- */

/* Makes a memfd of the whole size with a header; the rest is 0. Its mode is 0600, and its size is sealed. *ret_fd is
 * closed on exec. Returns -errno. */
int ll_page_make(int *ret_fd);
int ll_orders_make(const uint64_t token[2], int *ret_fd);

/* Opens the same file read-only, to pass it on. Returns -errno. */
int ll_page_reopen_read_only(int fd, int *ret_fd);

/* ---- both sides ---- */

/* Maps a descriptor that another process passed on. The caller may close the descriptor afterwards. -EBADMSG: it is not
 * a page, or has another version or size. Other errors: -errno. The unmap functions accept NULL. */
int ll_page_map(int fd, bool is_writable, struct ll_page **ret_page);
int ll_orders_map(int fd, bool is_writable, struct ll_orders **ret_orders);
void ll_page_unmap(struct ll_page *page);
void ll_orders_unmap(struct ll_orders *orders);

/* Reads only the memory limit, with one load. 0: none. */
uint64_t ll_orders_memory_limit(const struct ll_orders *orders);

/* Reads the limits from the orders; it reads again if they are being written. The daemon writes them. */
void ll_orders_read_limits(const struct ll_orders *orders, struct ll_limits *ret_limits);
void ll_orders_write_limits(struct ll_orders *orders, const struct ll_limits *limits);

/* Returns the index of the card with that UUID; LL_PAGE_CARDS: the job has no such card. */
unsigned ll_orders_find_card(const struct ll_orders *orders, const char *uuid);
void ll_orders_read_uuid(const struct ll_orders_card *card, char ret_uuid[LL_PAGE_UUID_SIZE]);

/* Returns 1 + the highest slot that may be in use. */
unsigned ll_page_slot_end(const struct ll_page *page);

/* Returns the sum of used memory over the slots of that card. */
uint64_t ll_page_used_bytes(const struct ll_page *page, unsigned card);

/* Raises the count, and wakes the threads that sleep on it. */
void ll_page_wake(_Atomic uint32_t *wake_count);

/* Wakes them without a change of the count, which the caller need not be allowed to write. */
void ll_page_wake_all(const _Atomic uint32_t *wake_count);

/* Sleeps until another thread or process wakes it, or until until_ns (ll_now_ns). Returns at once if the count differs.
 * It may also return without a cause. */
void ll_page_sleep(const _Atomic uint32_t *wake_count, uint32_t count, uint64_t until_ns);

/* A slot's note, cut at 63 bytes. It has one writer. */
void ll_page_write_note(struct ll_page_slot *slot, const char *note);
void ll_page_read_note(const struct ll_page_slot *slot, char ret_note[64]);

#endif
