/*
 * layout.h - the bytes of a ledger file. Private to src/ledger.
 *
 * A file is a header page, a page of the tenants' card words, one 256-byte row per tenant, one 512-byte slot per claim,
 * and the bins of time of each tenant. Every field that changes is one naturally aligned atomic word. So any process
 * may read at any time, and sees each word whole. Nothing in the file is a pointer, or depends on the program that
 * wrote it. A change of any offset or meaning is a new LL_LEDGER_VERSION.
 *
 * Whoever holds the lock of a slot may write it (ledger.h): its owner, or a sweeper that found the lock free. There are
 * two exceptions. If the owner is gone but a stray copy of its description keeps the lock, a sweeper withdraws the
 * token, by compare-and-swap and nothing else; the slot is cleaned when its lock comes free. And other processes write
 * the words by which they tell the owner something, through act.h alone. doc/internals.md lists the words.
 *
 * The life of a slot: its bit in `used` is set first and cleared last. Its token is published after everything else,
 * and withdrawn before anything else. So a slot with a clear bit is clean. A slot with a set bit and token 0 is being
 * taken or given up, or its owner was killed meanwhile.
 */
#ifndef LOADLINE_LEDGER_LAYOUT_H
#define LOADLINE_LEDGER_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* How long the card worked for a tenant, in bins of time; see account.h. All zero at first. */
enum { LL_BUSY_BINS = 64, LL_BUSY_LONG_BINS = 256 };
#define LL_BUSY_BIN_NS UINT64_C(500000)
#define LL_BUSY_LONG_BIN_NS UINT64_C(8000000)

struct ll_busy_bins {
	_Atomic uint64_t words[LL_BUSY_BINS]; /* number of the bin << 24 | ns counted in it */
	_Atomic uint64_t long_words[LL_BUSY_LONG_BINS];
};

enum {
	LL_LEDGER_VERSION = 9,
	LL_LEDGER_CLAIMS = 256,
	LL_LEDGER_CLAIMS_OF_TENANT = 128, /* at most: a half is left to all others */
	LL_LEDGER_TENANTS = 128,
	LL_LEDGER_HEADER_BYTES = 4096,
	LL_LEDGER_WORDS_BYTES = 4096,
	LL_LEDGER_TENANT_BYTES = 256,
	LL_LEDGER_TENANTS_BYTES = LL_LEDGER_TENANTS * LL_LEDGER_TENANT_BYTES,
	LL_LEDGER_SLOT_BYTES = 512,
	LL_LEDGER_BUSY_BYTES = LL_LEDGER_TENANTS * (int)sizeof(struct ll_busy_bins),
	LL_LEDGER_FILE_BYTES = LL_LEDGER_HEADER_BYTES + LL_LEDGER_WORDS_BYTES + LL_LEDGER_TENANTS_BYTES +
			       LL_LEDGER_CLAIMS * LL_LEDGER_SLOT_BYTES + LL_LEDGER_BUSY_BYTES,
};

/* What the assertions below say. */
#define LL_LEDGER_LAYOUT "another layout is a new LL_LEDGER_VERSION"

/* "loadline" as it lies in memory. */
#define LL_LEDGER_MAGIC UINT64_C(0x656e696c64616f6c)

/* Byte offsets of the locks, beyond the file's end so that they never meet data: one per slot, then the odd ones. */
enum {
	LL_LOCK_SLOTS = 1 << 20,
	LL_LOCK_HOLD = LL_LOCK_SLOTS + LL_LEDGER_CLAIMS, /* the one hold of the card */
	LL_LOCK_MAKE,                                    /* making the file */
	LL_LOCK_JOIN,                                    /* making and clearing tenants' rows */
	LL_LOCK_TENANTS = 2 << 20,                       /* one per tenant row: shared by all who keep it alive */
};

struct ll_ledger_slot {
	/* identity: written once, before the token is published */
	_Atomic uint64_t token;       /* 0: nobody's; else unique for ever in this file */
	_Atomic uint64_t namespaces;  /* of the owner, see liveness.h; 0: unknown */
	_Atomic uint64_t start_ticks; /* of the owner, field 22 of its /proc/PID/stat */
	_Atomic int32_t pid;          /* in those namespaces */
	_Atomic uint32_t priority;    /* enum ll_priority */
	_Atomic uint64_t taken_ns;    /* CLOCK_MONOTONIC */
	_Atomic uint64_t reserved_identity[3];

	/* what the hot paths touch: a cache line of its own */
	_Atomic uint64_t
	    activity_ns; /* UINT64_MAX while work is queued or running, else the last moment it was; 0 never */
	_Atomic uint64_t heartbeat_ns;
	_Atomic uint32_t gate;            /* enum ll_gate, see words.h */
	_Atomic uint32_t state;           /* enum ll_claim_state */
	_Atomic uint64_t want_since_ns;   /* CLOCK_MONOTONIC since when it has launches that wait or run; 0: none */
	_Atomic uint64_t queued_ns;       /* estimated work of it that the card still has; see turn.h */
	_Atomic uint32_t wake_count;      /* a futex: counts what others changed for the claim */
	_Atomic uint32_t queued_launches; /* as queued_ns */
	_Atomic uint64_t asked_ns;   /* CLOCK_MONOTONIC since when its reserve is wanted, see memory.h; 0: it is not */
	_Atomic uint64_t running_ns; /* how long the card has been at work of it that is not charged yet */

	/* limits */
	_Atomic uint64_t memory_limit_bytes; /* 0: none */
	_Atomic uint64_t memory_used_bytes;
	_Atomic uint64_t evictable_bytes;      /* of those used: what can be moved, see memory.h */
	_Atomic uint32_t compute_cap_permille; /* 0: none */
	_Atomic uint32_t weight_permille;      /* 1000 is weight 1 */
	_Atomic uint32_t tenant_row;           /* 1 + row of the tenants' table; 0: none (a hold) */
	_Atomic uint32_t target_permille;      /* a hold's; 0 where it is in watts */
	_Atomic uint32_t target_watts;
	_Atomic uint32_t pace;       /* enum ll_pace, see words.h */
	_Atomic uint32_t visit;      /* enum ll_visit_flag, see words.h */
	_Atomic uint32_t residency;  /* enum ll_claim_residency, see words.h */
	_Atomic uint64_t away_bytes; /* of those evictable: what is not on the card now */

	/* accounts */
	_Atomic uint64_t gpu_time_ns;
	_Atomic uint64_t virtual_time_ns;
	_Atomic uint64_t token_debt_ns;
	_Atomic uint64_t synthetic_busy_ns;
	_Atomic uint64_t energy_mj;
	_Atomic uint64_t yields;
	_Atomic uint64_t reserved_accounts[2];

	/* texts, NUL-padded, eight bytes a word; text_sequence is odd while one is written */
	_Atomic uint32_t text_sequence;
	_Atomic uint32_t checkpoint; /* enum ll_claim_checkpoint, see words.h */
	_Atomic uint64_t tenant[8];
	_Atomic uint64_t payload[2];
	_Atomic uint64_t note[8];
	_Atomic uint64_t metric[2];
	_Atomic uint64_t reserved_texts[11];
};

_Static_assert(offsetof(struct ll_ledger_slot, activity_ns) == 64, "the hot line begins on a cache line");
_Static_assert(offsetof(struct ll_ledger_slot, state) == 84, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, memory_limit_bytes) == 128, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, evictable_bytes) == 144, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, compute_cap_permille) == 152, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, target_permille) == 164, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, away_bytes) == 184, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, gpu_time_ns) == 192, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, synthetic_busy_ns) == 216, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, text_sequence) == 256, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, tenant) == 264, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, payload) == 328, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_slot, metric) == 408, LL_LEDGER_LAYOUT);
_Static_assert(sizeof(struct ll_ledger_slot) == LL_LEDGER_SLOT_BYTES, LL_LEDGER_LAYOUT);

/*
 * A tenant: what one `loadline run` and all its descendants share. There are rows 0 to 127. A row is in use while its
 * id is not 0. It is live while a claim names it, or while its lock is held: by a description that the process tree
 * inherits, or by a process that has joined. Rows are made and cleared under LL_LOCK_JOIN. Who clears a row has its
 * lock alone. The id is written last, and zeroed first.
 */
struct ll_ledger_tenant {
	_Atomic uint64_t id;                   /* unique, made by who starts the tenant; 0: free row */
	_Atomic uint64_t guard;                /* who changes the memory total, see total.h; 0 nobody */
	_Atomic uint32_t guard_waiters;        /* a futex: 1 when somebody may be asleep for the guard */
	_Atomic uint32_t priority;             /* enum ll_priority */
	_Atomic uint64_t memory_limit_bytes;   /* 0: none */
	_Atomic uint64_t memory_used_bytes;    /* the sum of its claims', under the guard */
	_Atomic uint32_t compute_cap_permille; /* 0: none */
	_Atomic uint32_t weight_permille;      /* 1000 is weight 1 */
	_Atomic uint64_t taken_ns;             /* CLOCK_MONOTONIC */
	_Atomic uint32_t space_permille;       /* of the SMs, as a client of MPS; 0: it shares by time */
	_Atomic uint32_t reserved_limits;

	/* time: a cache line of its own */
	_Atomic uint64_t gpu_time_ns;     /* of all its claims, ended ones included */
	_Atomic uint64_t virtual_time_ns; /* GPU time by weight; see turn.h */
	_Atomic int64_t tokens_ns;        /* of the cap; negative: in debt */
	_Atomic uint64_t tokens_at_ns;    /* CLOCK_MONOTONIC up to which tokens were earned */
	/* with several cards, see gang.h; times are CLOCK_MONOTONIC */
	_Atomic uint64_t gang_turn_until_ns; /* it has the turn on its first card, and this is another */
	_Atomic uint64_t first_card;     /* a number for that card, on the others; 0: it has one card, or this is it */
	_Atomic uint64_t others_busy_ns; /* on its first card: when another last had work of it; launches of it below */
	_Atomic uint64_t ending_ns;      /* on its first card: when it was last about to give the turn away */

	_Atomic uint32_t text_sequence;
	_Atomic uint32_t reserved_text;
	_Atomic uint64_t name[8];
	_Atomic uint64_t others_launches;
	/* CLOCK_MONOTONIC: since when a process of it has no claim, and is not held to its limits, and when that was
	 * last said; 0: never */
	_Atomic uint64_t lost_since_ns;
	_Atomic uint64_t lost_seen_ns;
	_Atomic uint64_t memory_request_bytes; /* promised to it on the card; 0: nothing */
	_Atomic uint64_t reserved[3];
};

_Static_assert(offsetof(struct ll_ledger_tenant, space_permille) == 56, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_tenant, gpu_time_ns) == 64, "the time line begins on a cache line");
_Static_assert(offsetof(struct ll_ledger_tenant, name) == 136, LL_LEDGER_LAYOUT);
_Static_assert(sizeof(struct ll_ledger_tenant) == LL_LEDGER_TENANT_BYTES, LL_LEDGER_LAYOUT);

struct ll_ledger_file {
	uint64_t magic; /* this and the next five never change after the file got its name */
	uint32_t version;
	uint32_t slot_count;
	uint32_t slot_bytes;
	uint32_t file_bytes;
	char uuid[96];
	uint64_t reserved_fixed[1];

	_Atomic uint64_t next_token;
	_Atomic uint64_t used[LL_LEDGER_CLAIMS / 64]; /* bit i: slot i is not clean */
	_Atomic int32_t hold_pid;                     /* of the process that holds LL_LOCK_HOLD, for the message */
	_Atomic uint32_t reserved_header_word;
	_Atomic uint64_t turn;          /* who may launch now: (1 + slot index) << 48 | count of changes; see turn.h */
	_Atomic uint64_t turn_since_ns; /* CLOCK_MONOTONIC of the last change of holder */
	_Atomic uint64_t death_ns;      /* when a claim with memory was last cleared from outside; 0: never */
	char reserved_header[LL_LEDGER_HEADER_BYTES - 200];

	_Atomic uint32_t card_words[LL_LEDGER_WORDS_BYTES / 4]; /* of each tenant, for its streams: see act.h */

	struct ll_ledger_tenant tenants[LL_LEDGER_TENANTS];

	struct ll_ledger_slot slots[LL_LEDGER_CLAIMS];

	struct ll_busy_bins busy[LL_LEDGER_TENANTS]; /* of each tenant; see account.h */
};

_Static_assert(offsetof(struct ll_ledger_file, version) == 8, "the same in every version");
_Static_assert(offsetof(struct ll_ledger_file, uuid) == 24, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_file, next_token) == 128, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_file, used) == 136, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_file, turn) == 176, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_file, death_ns) == 192, LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_file, card_words) == LL_LEDGER_HEADER_BYTES, "a page of its own");
_Static_assert(offsetof(struct ll_ledger_file, tenants) == LL_LEDGER_HEADER_BYTES + LL_LEDGER_WORDS_BYTES,
	       LL_LEDGER_LAYOUT);
_Static_assert(offsetof(struct ll_ledger_file, slots) ==
		   LL_LEDGER_HEADER_BYTES + LL_LEDGER_WORDS_BYTES + LL_LEDGER_TENANTS_BYTES,
	       LL_LEDGER_LAYOUT);
_Static_assert(sizeof(struct ll_ledger_file) == LL_LEDGER_FILE_BYTES, LL_LEDGER_LAYOUT);
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "words shared by processes need no lock");

#endif
