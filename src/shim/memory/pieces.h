/*
 * pieces.h - the physical memory of this process that can be moved, piece by piece: what is under plain allocations
 * (backing.h), and what the program made itself by cuMemCreate (physical.h).
 *
 * For whoever moves pieces while the program's calls are shut (time/driver_calls.h).
 */
#ifndef LOADLINE_SHIM_MEMORY_PIECES_H
#define LOADLINE_SHIM_MEMORY_PIECES_H

#include "abi/cuda_memory.h"
#include "shim/memory/extents.h"

struct ll_piece {
	enum ll_extent_kind kind; /* LL_EXTENT_BACKING or LL_EXTENT_PHYSICAL */
	uint64_t address;         /* where it is mapped; of the program's own memory: the handle that the program has */
	uint64_t bytes;
	ll_cu_mem_handle handle; /* the driver's; good while the piece is on the card */
};

/*
 * Finds the next piece of the card after the extent *at, and puts its extent there. Begin with an extent that is all
 * zero but for its kind, LL_PIECES_FIRST. False: there are no more.
 */
#define LL_PIECES_FIRST LL_EXTENT_PHYSICAL
bool ll_pieces_next(const struct ll_device_state *dev, struct ll_extent *at, struct ll_piece *ret_piece);

/* All pieces of the card, in bytes. Looks at those of the program's own memory. */
uint64_t ll_pieces_bytes(const struct ll_device_state *dev);

/* What is charged for the memory in all pieces of the card. Less than the pieces where small allocations share them. */
uint64_t ll_pieces_charged_bytes(const struct ll_device_state *dev);

/* Unmaps the piece and lets its memory go; or makes memory for it and maps it with the same rights. make writes the
 * piece's handle. Its bytes are not set. */
void ll_piece_unmake(const struct ll_piece *piece);
ll_cu_result ll_piece_make(const struct ll_device_state *dev, struct ll_piece *piece);

/* Notes that a piece which was made again is complete. */
void ll_piece_note(const struct ll_piece *piece);

/* Copies bytes at an address of the host, or of a card, into a piece that is on the card. A context of the card is
 * current. */
ll_cu_result ll_piece_fill(const struct ll_device_state *dev, const struct ll_piece *piece, uint64_t offset,
			   ll_cu_deviceptr from, uint64_t bytes);

/*
 * Maps memory of any card at an address of the library's own, where the card of dev reads and writes it, for as long as
 * a copy takes. Nothing stays behind if it fails.
 */
ll_cu_result ll_piece_map_aside(const struct ll_device_state *dev, ll_cu_mem_handle handle, uint64_t bytes,
				ll_cu_deviceptr *ret_address);
void ll_piece_unmap_aside(ll_cu_deviceptr address, uint64_t bytes);

#endif
