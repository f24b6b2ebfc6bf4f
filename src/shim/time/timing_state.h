/*
 * timing_state.h - the inside of struct ll_timing. timing.c makes batches, timing_harvest.c reads batches that have
 * ended and reports the work that is left.
 */
#ifndef LOADLINE_SHIM_TIME_TIMING_STATE_H
#define LOADLINE_SHIM_TIME_TIMING_STATE_H

#include "shim/time/kernel_estimates.h"
#include "shim/time/timing.h"
#include "shim/time/timing_clock.h"

/* The assumed duration of a launch before any launch of the stream was timed. */
#define LL_TIMING_FIRST_GUESS_NS UINT64_C(1000000)

enum { LL_TIMING_BATCHES = 64 }; /* batches of one stream in flight; further batches are merged into the last one */

struct ll_timing_batch {
	struct ll_timing_event start; /* if there is no event, the batch begins at the end of the batch before it, or at
					 first_ns if that is later */
	struct ll_timing_event end;
	uint64_t started_ns;  /* CLOCK_MONOTONIC, after the start was recorded */
	uint64_t launched_ns; /* CLOCK_MONOTONIC, after the last launch */
	uint64_t
	    first_ns; /* CLOCK_MONOTONIC, before the first launch; 0: the batch has a start, or the time is not known */
	uint64_t kernel_key; /* the kernel of all launches; 0: there are several kernels */
	uint32_t launches;
	uint32_t ahead;     /* how many of the last launches were prepaid; the time of these launches is not known */
	bool is_end_shared; /* the end event is also the start of the next batch */
	bool is_behind;     /* the start was recorded while earlier batches of the stream were in flight */
	bool is_cut;  /* a launch was in the driver while the end was recorded; it counts in the next batch, even if it
			 is before the end event */
	bool is_held; /* the batch contains a wait for the gate on the card, so its duration is not known */
	bool has_gap; /* it contains operations that are no kernels (ll_timing_note_gap) */
	uint64_t guess_ns;
	uint64_t unsteady_ns; /* the part of guess_ns that belongs to kernels whose duration varies */
	/* For a tail that was not timed at once (CLOCK_MONOTONIC); 0: not seen */
	uint64_t begun_ns;    /* the tail was first seen to have begun */
	uint64_t seen_ns;     /* the tail was last seen to be unfinished */
	uint64_t seen_for_ns; /* lower bound of its time on the card before the end was recorded */
};

/* A sample of the launches that pass an open gate: after a number of such launches, the kernel of the next launch is
 * noted here. */
struct ll_timing_typical {
	uint64_t kernel_keys[64]; /* ring of the last noted kernels */
	uint32_t count;           /* number of all noted kernels */
	uint64_t mean_ns;         /* mean of the kernels that have an estimate; 0: no kernel has one */
};

struct ll_timing_track {
	struct ll_timing_stream name;
	bool is_used, is_gone;
	uint32_t first, count;          /* first batch in the ring, and number of batches */
	struct ll_timing_batch open;    /* the launches that no event follows yet */
	struct ll_timing_batch closing; /* while is_in_driver: the launches before the event in progress */
	bool is_in_driver;              /* a thread calls the driver for this stream's timing, without the lock */
	bool is_left;                   /* the open launches could not be timed, and count as ended */
	uint64_t launching_ns; /* CLOCK_MONOTONIC, begin of the launch for which a thread is in the driver; 0: there is
				  none */
	uint64_t recorded_ns;  /* CLOCK_MONOTONIC, after an event was last recorded; another thread may have launched
				  before the event */
	uint64_t mean_ns;      /* mean duration of a launch; 0: not known */
	struct ll_timing_typical
	    typical; /* sample of the launches that pass an open gate (ll_timing_set_shared: is_sampled) */
	struct ll_timing_stamp end; /* times of the end event of the last batch that ended */
	uint64_t end_host_ns;       /* CLOCK_MONOTONIC when that event was recorded */
	bool was_cut;               /* the value of is_cut of that batch */
	uint64_t over_ns;           /* time already charged for a launch that counts in the next batch */
	uint64_t settled;           /* number of batches that have ended */
	uint64_t unheld_ns;         /* estimated work that was launched since the last wait for the gate on the card */
	uint32_t wait_word;         /* the gate's word at that wait; 0: there was no wait */
	uint32_t free_batches; /* number of batches in flight that were launched before the first wait, including the
				  open one */
	/* state of ll_timing_longest: */
	uint64_t watched;  /* value of settled at the last call */
	uint64_t since_ns; /* CLOCK_MONOTONIC when the oldest batch was first seen, or was seen to have begun; 0: there
			      was none */
	bool has_begun;    /* the card has reached the start of the oldest batch */
	struct ll_timing_track *next;
	struct ll_timing_batch batches[LL_TIMING_BATCHES]; /* ring of the batches in flight */
};

struct ll_timing {
	struct ll_timing_track *tracks;
	struct ll_kernel_estimates estimates;
	struct ll_timing_clock clock;
	uint64_t event_ns; /* the clock's event_ns when a batch was last read; 0: none was */
	struct ll_busy busy, accounted, spans;
	struct ll_shortest shortest;
	uint64_t disturbed_ns; /* when others last shared the card; 0: never */
	uint64_t every_ns, patience_ns;
	bool is_shared, is_sampled, is_watched;
	unsigned parts;
	unsigned sliced_by; /* number of other programs that share the card by time slices */
	ll_timing_charge_fn *charge;
	void *charge_of;
	uint64_t settled, watched, progress_ns; /* as in struct ll_timing_track, for all streams */
};

/* Returns the track of the stream; NULL: the stream is not known. */
struct ll_timing_track *ll_timing_track_find(struct ll_timing *timing, struct ll_timing_stream name);

/* Charges the batches of a track that have ended. The track is in use. */
void ll_timing_track_harvest(struct ll_timing *timing, struct ll_timing_track *track);

/* Returns the mean duration of the stream's launches; 0: not known. While launches are sampled, uses the mean of the
 * kernels noted by ll_timing_note_typical, if there is one. */
uint64_t ll_timing_track_mean_ns(const struct ll_timing *timing, const struct ll_timing_track *track);

/* Returns whether the track has a tail (ll_timing_close_tails). */
bool ll_timing_track_has_tail(const struct ll_timing_track *track);

#endif
