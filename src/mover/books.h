/*
 * books.h - what loadlined tells the mover of programs and cards. Private to src/mover.
 *
 * The mover asks each time that it decides, and waits for an answer no longer than a tenth of a second: then it goes by
 * what it knows. A daemon that has just begun may not know all programs yet.
 */
#ifndef LOADLINE_MOVER_BOOKS_H
#define LOADLINE_MOVER_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/client.h"

struct ll_mover_books {
	const char *version; /* of this program */
	struct ll_place place;
	bool has_place;
	struct ll_client client;
	struct ll_list list;  /* the newest */
	uint64_t list_ns;     /* when it was read; 0: never */
	uint64_t settled_ns;  /* from when on whoever is not in the list has ended */
	uint64_t unserved_ns; /* since when nobody serves; 0: somebody does */
	uint64_t again_ns;    /* it did not answer: it is asked again then */
};

/* sim_folder: of the simulated world; NULL: the real cards. */
void ll_mover_books_init(struct ll_mover_books *books, const char *sim_folder, const char *version);
void ll_mover_books_fini(struct ll_mover_books *books);

/* Reads the list anew. False: loadlined does not answer. If nobody serves, the list is empty. */
bool ll_mover_books_read(struct ll_mover_books *books);

/* Ends the connection, as long as nothing is to be asked: loadlined ends if it has none, and no jobs. */
void ll_mover_books_rest(struct ll_mover_books *books);

/* Whether a claim that is not in the list has ended. */
bool ll_mover_books_are_settled(const struct ll_mover_books *books);

/* The claim on the card with that number. NULL: there is none. */
const struct ll_message_claim_row *ll_mover_books_find(const struct ll_mover_books *books, const char *uuid,
						       unsigned number);

/* Whether a program claims the card. Reads the list anew. True also if loadlined does not answer. */
bool ll_mover_books_is_claimed(struct ll_mover_books *books, const char *uuid);

#endif
