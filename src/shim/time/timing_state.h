/*
 * timing_state.h - the inside of struct ll_timing. timing.c makes batches, timing_harvest.c reads those that have
 * ended, and timing_look.c reports what is left.
 */
#ifndef LOADLINE_SHIM_TIME_TIMING_STATE_H
#define LOADLINE_SHIM_TIME_TIMING_STATE_H

#include "shim/time/kernel_estimates.h"
#include "shim/time/timing.h"
#include "shim/time/timing_clock.h"

/* The assumed duration of a launch before anything is known. */
#define LL_TIMING_FIRST_GUESS_NS UINT64_C(1000000)

enum { LL_TIMING_BATCHES = 64 }; /* batches of one stream in flight; further ones are joined to the last */

struct ll_timing_batch {
	struct ll_timing_event
	    start; /* no event: the batch begins at the end of the one before it, or at first_ns if that is later */
	struct ll_timing_event end;
	uint64_t started_ns;  /* CLOCK_MONOTONIC, after the start was recorded */
	uint64_t launched_ns; /* CLOCK_MONOTONIC, after the last launch */
	uint64_t
	    first_ns; /* CLOCK_MONOTONIC, before the first launch; 0: the batch has a start, or this is not known */
	uint64_t kernel_key; /* of all launches; 0: they are of several kernels */
	uint32_t launches;
	uint32_t ahead;     /* how many of the last launches were prepaid: when they were made is not known */
	bool is_end_shared; /* the end is also the start of the next batch */
	bool is_behind;     /* the start was recorded while the stream had other launches */
	bool is_cut;  /* a launch was in the driver while the end was recorded; it counts in the next batch, wherever it
			 is */
	bool is_held; /* the batch is behind a wait for the gate on the card, so its duration is not known */
	uint64_t guess_ns;
	uint64_t unsteady_ns; /* the part of guess_ns that is of kernels whose duration varies */
	/* CLOCK_MONOTONIC, of a tail that was not timed at once; 0: not seen */
	uint64_t begun_ns;    /* first seen to have begun */
	uint64_t seen_ns;     /* last seen not to be done */
	uint64_t seen_for_ns; /* time in which it was seen at work before its end was recorded, at least */
};

/* A sample of the launches that passed an open gate: the kernels of launches that came after a number of such launches.
 * */
struct ll_timing_typical {
	uint64_t kernel_keys[64]; /* the last ones, a ring */
	uint32_t count;           /* ever */
	uint64_t mean_ns;         /* of those whose kernel is known; 0: of none */
};

struct ll_timing_track {
	struct ll_timing_stream name;
	bool is_used, is_gone;
	uint32_t first, count;          /* of batches */
	struct ll_timing_batch open;    /* launches that no event follows yet */
	struct ll_timing_batch closing; /* while is_in_driver: the launches that the event being recorded will follow */
	bool is_in_driver;              /* a thread is in the driver, without the lock, for this stream's timing */
	bool is_left;                   /* the open launches could not be timed, and are taken to have ended */
	uint64_t launching_ns; /* CLOCK_MONOTONIC, when a thread began the launch for which it is in the driver; 0: no
				  thread is */
	uint64_t recorded_ns;  /* CLOCK_MONOTONIC, after the last record; another thread may have launched before it */
	uint64_t mean_ns;      /* of a launch; 0: not known */
	struct ll_timing_typical
	    typical;                /* what the launches are that passed an open gate, while programs share by slices */
	struct ll_timing_stamp end; /* of the last batch that ended */
	uint64_t end_host_ns;       /* when its end was recorded */
	bool was_cut;               /* is_cut of that batch */
	uint64_t over_ns;           /* charged time of a launch that counts in the next batch */
	uint64_t settled;           /* batches that have ended */
	uint64_t unheld_ns;         /* estimated work that was launched since the last wait for the gate on the card */
	uint32_t wait_word;         /* what the gate's word was at that wait; 0: there was none */
	uint32_t free_batches;      /* batches, the open one among them, that were launched before the first wait */
	/* what ll_timing_longest has seen: */
	uint64_t watched;  /* settled at that time */
	uint64_t since_ns; /* when the oldest batch was first seen, or seen to have begun; 0: there was none */
	bool has_begun;    /* its start has been reached */
	struct ll_timing_track *next;
	struct ll_timing_batch batches[LL_TIMING_BATCHES]; /* a ring of those in flight */
};

struct ll_timing {
	struct ll_timing_track *tracks;
	struct ll_kernel_estimates estimates;
	struct ll_timing_clock clock;
	uint64_t event_ns; /* of the clock, when kernels were learned; 0: none was */
	struct ll_busy busy;
	uint64_t every_ns, patience_ns;
	bool is_shared, is_watched;
	unsigned parts;
	unsigned sliced_by; /* others that share the card by slices; 0: nobody, or not by slices */
	ll_timing_charge_fn *charge;
	void *charge_of;
	uint64_t settled, watched, progress_ns; /* batches of all streams, as for one */
};

/* Returns the track of the stream; NULL: nothing of it is known. */
struct ll_timing_track *ll_timing_track_find(struct ll_timing *timing, struct ll_timing_stream name);

/* Finds the batches of a track in use that have ended, and charges them. */
void ll_timing_track_harvest(struct ll_timing *timing, struct ll_timing_track *track);

/* The mean duration of the stream's launches; 0: not known. While programs share by slices, the sample of
 * ll_timing_note_typical tells it, if there is one. */
uint64_t ll_timing_track_mean_ns(const struct ll_timing *timing, const struct ll_timing_track *track);

/* Whether the track has launches that no event follows yet, with nothing in flight before them. */
bool ll_timing_track_has_tail(const struct ll_timing_track *track);

#endif
